-- Running tasks that need something which has a capacity, and for which neither they nor, where they are behind others of their lease,
-- any of those count.
WITH held AS MATERIALIZED (
    SELECT DISTINCT e.key, s.resource FROM $schema$.lease e CROSS JOIN LATERAL unnest(e.ids) u(task) JOIN $schema$.slot s ON s.task = u.task)
SELECT u.task, r.name FROM $schema$.lease e CROSS JOIN LATERAL unnest(e.ids, e.flags) u(task, flags) JOIN $schema$.live v ON v.id = u.task
JOIN $schema$.lane l ON l.id = v.lane AND l.placement <> ''
CROSS JOIN LATERAL jsonb_object_keys(coalesce(nullif(l.placement, '')::jsonb -> 'needs', '{}')) n(name)
JOIN $schema$.resource r ON r.name = n.name LEFT JOIN $schema$.resource p ON p.name = r.pattern
WHERE coalesce(p.settings, r.settings)::jsonb ? 'capacity'
    AND NOT EXISTS (SELECT FROM $schema$.slot s WHERE s.task = u.task AND s.resource = r.id)
    AND NOT ((u.flags & 8192) <> 0 AND (e.key, r.id) IN (SELECT key, resource FROM held))
LIMIT 20
