-- $1 ids, $2 parts
SELECT id FROM $schema$.live WHERE id = ANY ($1::bigint[])
UNION ALL SELECT id FROM $schema$.history WHERE id = ANY ($1::bigint[]) AND part = ANY ($2::int[])
