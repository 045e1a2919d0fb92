-- Of these tasks those that are kept, and when to look again: a finished one when its retention is over, and its day.
-- $1 ids, $2 parts, $3 ms until the next look at the earliest
WITH n AS MATERIALIZED (SELECT $schema$.now_() + $3::bigint * interval '1 millisecond' AS t)
SELECT v.id, n.t FROM n, $schema$.live v WHERE v.id = ANY ($1::bigint[])
UNION ALL
SELECT h.id, greatest(n.t, h.finished_at + coalesce(r.keep_ms, 0) * interval '1 millisecond' + interval '1 day')
FROM n, $schema$.history h LEFT JOIN $schema$.retention r ON r.class = h.part % 16
WHERE h.id = ANY ($1::bigint[]) AND h.part = ANY ($2::int[])
