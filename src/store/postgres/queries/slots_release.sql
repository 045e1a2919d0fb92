-- What some tasks held is free; then the queues in which something waits that needs it.
-- $1 tasks, $2 only of those that are over, $3 how many queues, $4/$5 lanes and the positions below which they were found empty
WITH d AS (
    DELETE FROM $schema$.slot s
    WHERE s.task = ANY ($1::bigint[]) AND (NOT $2::boolean OR NOT EXISTS (SELECT FROM $schema$.live f WHERE f.id = s.task OFFSET 0))
    RETURNING s.task, s.resource),
f AS MATERIALIZED (SELECT d.task, r.name, r.state FROM d JOIN $schema$.resource r ON r.id = d.resource),
n AS MATERIALIZED (SELECT array_agg(DISTINCT f.name) AS names FROM f)
SELECT f.task, f.name, f.state, NULL::text FROM f
UNION ALL
SELECT NULL, NULL, NULL, w.name FROM (
    SELECT DISTINCT q.name FROM n CROSS JOIN $schema$.lane l JOIN $schema$.queue q ON q.id = l.queue
    LEFT JOIN unnest($4::int[], $5::bigint[]) u(lane, mark) ON u.lane = l.id
    WHERE n.names IS NOT NULL
        AND (nullif(l.placement, '')::jsonb -> 'needs' ?| n.names
            OR 'queue:' || lower(q.name) = ANY (n.names) OR 'type:' || lower(l.type) = ANY (n.names))
        AND EXISTS (SELECT FROM $schema$.ready r WHERE r.lane = l.id AND r.pos > coalesce(u.mark, 0) OFFSET 0)
    LIMIT $3::int) w
