-- As many as have $3 bytes together, and the one that goes beyond. $1 ids, $2 parts, $3 bytes
SELECT x.id, x.state, x.output, x.error, x.reason, x.warning, x.type FROM (
    SELECT h.id, h.state, h.output, h.error, h.reason, h.warning, l.type,
        sum(coalesce(octet_length(h.output), 0) + coalesce(octet_length(h.error), 0)) OVER (ORDER BY h.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM $schema$.history h JOIN $schema$.lane l ON l.id = h.lane
    WHERE h.id = ANY ($1::bigint[]) AND h.part = ANY ($2::int[])) x
WHERE coalesce(x.before, 0) < $3::bigint
