-- Which conditions keep a waiting task from a claimer, and what they speak of; no row for a task that does not wait.
-- $1 session or NULL, $2 queues (empty = all), $3 types, $4 suspects, $5 task
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t)
SELECT $applying$, v.due_at, v.start_by, q.name, l.type, a.key, v.lane, v.pos, a.first
FROM $schema$.live v JOIN $schema$.lane l ON l.id = v.lane JOIN $schema$.queue q ON q.id = l.queue
LEFT JOIN $schema$.session z ON z.id = $1::uuid
LEFT JOIN LATERAL (
    SELECT o.key, (SELECT f.task FROM $schema$.ordered f WHERE f.tenant = o.tenant AND f.key = o.key AND f.turn IS NOT NULL ORDER BY f.turn LIMIT 1) AS first
    FROM $schema$.ordered o WHERE o.task = v.id OFFSET 0) a ON true
CROSS JOIN LATERAL (
    SELECT y.task, y.flags, NULL::timestamptz AS due, false AS behind FROM $schema$.ready y WHERE y.lane = v.lane AND y.pos = v.pos AND y.task = v.id
    UNION ALL
    SELECT y.task, y.flags, CASE WHEN y.due = 'infinity' THEN v.due_at ELSE y.due END, y.due = 'infinity' FROM $schema$.later y WHERE y.task = v.id) r
WHERE v.id = $5::bigint
