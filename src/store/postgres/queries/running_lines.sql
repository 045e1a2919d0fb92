-- What runs, the lines it is of, and what it holds; or, of one that is behind others of its lease, what those hold.
-- That is asked once for each lease, not once for each of its tasks.
WITH held AS MATERIALIZED (
    SELECT e.key, array_agg(DISTINCT r.name) AS names
    FROM $schema$.lease e CROSS JOIN LATERAL unnest(e.ids) u(task) JOIN $schema$.slot s ON s.task = u.task JOIN $schema$.resource r ON r.id = s.resource
    WHERE EXISTS (SELECT FROM unnest(e.flags) f WHERE (f & 8192) <> 0)
    GROUP BY e.key)
SELECT u.task, q.name, l.type, l.placement,
    CASE WHEN (u.flags & 8192) <> 0 THEN coalesce(h.names, '{}')
        ELSE ARRAY(SELECT r.name FROM $schema$.slot s JOIN $schema$.resource r ON r.id = s.resource WHERE s.task = u.task) END,
    (u.flags & 8192) <> 0
FROM $schema$.lease e CROSS JOIN LATERAL unnest(e.ids, e.flags) u(task, flags) JOIN $row live v u.task$
JOIN $schema$.lane l ON l.id = v.lane JOIN $schema$.queue q ON q.id = l.queue LEFT JOIN held h ON h.key = e.key
