-- The time, when the next one after it is due, and what is due now. $1 limit
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t)
SELECT s.id, s.spec, s.revision, s.turn, s.paused, s.created_at, s.considered_at, s.next_at, s.queued_at, s.last_instant, s.last_task, s.running,
    s.changed_by, s.changed_at, s.name,
    n.t, (SELECT f.next_at FROM $schema$.schedule f WHERE NOT f.paused AND f.next_at IS NOT NULL AND f.next_at > (SELECT t FROM n)
          ORDER BY f.next_at LIMIT 1)
FROM n LEFT JOIN LATERAL (
    SELECT f.* FROM $schema$.schedule f WHERE NOT f.paused AND f.next_at IS NOT NULL AND f.next_at <= n.t
    ORDER BY f.next_at LIMIT $1::int) s ON true
ORDER BY s.next_at
