-- What is held by a task that does not run, or is not what it needs. Of queues and types a task needs one.
SELECT s.task, r.name FROM $schema$.slot s JOIN $schema$.resource r ON r.id = s.resource
WHERE NOT EXISTS (SELECT FROM $schema$.lease e WHERE e.ids @> ARRAY[s.task])
UNION ALL
SELECT s.task, r.name FROM $schema$.slot s JOIN $schema$.resource r ON r.id = s.resource JOIN $schema$.live v ON v.id = s.task
JOIN $schema$.lane l ON l.id = v.lane
WHERE r.name !~ '^(queue|type):' AND s.units IS DISTINCT FROM (nullif(l.placement, '')::jsonb -> 'needs' ->> r.name)::int
LIMIT 20
