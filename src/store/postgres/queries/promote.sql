-- Tasks that have become due go to their places: by priority, then from the lane that has waited longest. Answers per lane the
-- lowest of them. $1 session, $2 queues (empty = all), $3 types, $4 suspects, $5 limit
-- It is the first statement of every claim, so here a claim says that it is under way: whoever sets a limit waits for it
-- (claims_stop.sql), and the statements that follow see what was set before. The last line is where it is made sure of, rows or none.
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
l AS MATERIALIZED (
    SELECT l.id FROM $schema$.lane l JOIN $schema$.queue q ON q.id = l.queue CROSS JOIN LATERAL (
        SELECT r.due FROM $schema$.later r WHERE r.lane = l.id AND $passes due$ ORDER BY r.due LIMIT 1) f
    WHERE $passes lane$
    ORDER BY l.priority DESC, f.due),
d AS MATERIALIZED (
    SELECT w.c FROM l CROSS JOIN LATERAL (
        SELECT r.ctid AS c FROM $schema$.later r WHERE r.lane = l.id AND $passes due$
        ORDER BY r.due, r.task LIMIT $5::int FOR UPDATE SKIP LOCKED) w
    LIMIT $5::int),
g AS (DELETE FROM $schema$.later WHERE ctid = ANY (ARRAY(SELECT c FROM d)) RETURNING task, lane, flags),
o AS MATERIALIZED (SELECT g.task, g.lane, g.flags, v.pos FROM g JOIN $row live v g.task$),
i AS (INSERT INTO $schema$.ready(lane, pos, task, flags) SELECT lane, pos, task, flags FROM o)
SELECT lane, min(pos) FROM o
WHERE (SELECT pg_advisory_xact_lock_shared(hashtextextended('$schema_name$', 7007)) IS NOT NULL) GROUP BY lane
