-- The tasks right below the given ones, and whether they are finished. $1 ids, $2 parts of history, $3 how many
SELECT u.id, c.id, c.finished FROM unnest($1::bigint[]) u(id) CROSS JOIN LATERAL (
    SELECT f.id, false AS finished FROM $schema$.live f WHERE f.parent = u.id
    UNION ALL
    SELECT h.id, true FROM $schema$.history h WHERE h.parent = u.id AND h.part = ANY ($2::int[])
    OFFSET 0) c
LIMIT $3::int
