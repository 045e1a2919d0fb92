-- Tasks that have become due go to their places: by priority, then from the lane that has waited longest. Answers per lane the
-- lowest of them. $1 queues (empty = all), $2 types, $3 limit
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
l AS MATERIALIZED (
    SELECT l.id FROM $schema$.lane l JOIN $schema$.queue q ON q.id = l.queue CROSS JOIN LATERAL (
        SELECT x.due FROM $schema$.later x WHERE x.lane = l.id AND x.due <= (SELECT t FROM n) ORDER BY x.due LIMIT 1) f
    WHERE l.type = ANY ($2::text[]) AND (cardinality($1::text[]) = 0 OR q.name = ANY ($1::text[])) AND NOT q.paused
    ORDER BY l.priority DESC, f.due),
d AS MATERIALIZED (
    SELECT w.c FROM l CROSS JOIN LATERAL (
        SELECT x.ctid AS c FROM $schema$.later x WHERE x.lane = l.id AND x.due <= (SELECT t FROM n)
        ORDER BY x.due, x.task LIMIT $3::int FOR UPDATE SKIP LOCKED) w
    LIMIT $3::int),
g AS (DELETE FROM $schema$.later WHERE ctid = ANY (ARRAY(SELECT c FROM d)) RETURNING task, lane, flags),
o AS MATERIALIZED (SELECT g.task, g.lane, g.flags, v.pos FROM g JOIN $schema$.live v ON v.id = g.task),
i AS (INSERT INTO $schema$.ready(lane, pos, task, flags) SELECT lane, pos, task, flags FROM o)
SELECT lane, min(pos) FROM o GROUP BY lane
