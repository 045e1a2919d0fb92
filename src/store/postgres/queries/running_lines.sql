-- What runs, the lines it is of, and what it holds.
SELECT u.task, q.name, l.type, l.placement,
    ARRAY(SELECT r.name FROM $schema$.slot s JOIN $schema$.resource r ON r.id = s.resource WHERE s.task = u.task)
FROM $schema$.lease e CROSS JOIN LATERAL unnest(e.ids) u(task) JOIN $row live v u.task$
JOIN $schema$.lane l ON l.id = v.lane JOIN $schema$.queue q ON q.id = l.queue
