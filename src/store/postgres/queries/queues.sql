WITH w AS (
    SELECT l.queue, sum((SELECT count(*) FROM $schema$.ready r WHERE r.lane = l.id) + (SELECT count(*) FROM $schema$.later x WHERE x.lane = l.id)) AS n
    FROM $schema$.lane l GROUP BY l.queue),
h AS (
    SELECT l.queue, count(*) AS n FROM $schema$.lease e CROSS JOIN LATERAL unnest(e.ids) u(task) JOIN $schema$.live v ON v.id = u.task
    JOIN $schema$.lane l ON l.id = v.lane GROUP BY l.queue)
SELECT q.name, q.paused, q.cap, q.keep_complete_ms, q.keep_dead_ms, q.keep_cancelled_ms, q.changed_by, q.changed_at,
    coalesce(w.n, 0)::bigint, coalesce(h.n, 0)::bigint
FROM $schema$.queue q LEFT JOIN w ON w.queue = q.id LEFT JOIN h ON h.queue = q.id ORDER BY q.name COLLATE "C"
