-- What runs, the lines it is of, and what it holds; or, of one that is behind others of its lease, what those hold.
SELECT u.task, q.name, l.type, l.placement,
    ARRAY(SELECT r.name FROM $schema$.slot s JOIN $schema$.resource r ON r.id = s.resource WHERE s.task = u.task
        UNION SELECT r.name FROM $schema$.slot s JOIN $schema$.resource r ON r.id = s.resource WHERE (u.flags & 8192) <> 0 AND s.task = ANY (e.ids)),
    (u.flags & 8192) <> 0
FROM $schema$.lease e CROSS JOIN LATERAL unnest(e.ids, e.flags) u(task, flags) JOIN $row live v u.task$
JOIN $schema$.lane l ON l.id = v.lane JOIN $schema$.queue q ON q.id = l.queue
