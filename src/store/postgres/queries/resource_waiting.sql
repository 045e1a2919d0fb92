-- How many wait, per queue, type and placement of their lanes.
SELECT q.name, l.type, l.placement, sum((SELECT count(*) FROM $schema$.ready r WHERE r.lane = l.id) + (SELECT count(*) FROM $schema$.later x WHERE x.lane = l.id))::bigint
FROM $schema$.lane l JOIN $schema$.queue q ON q.id = l.queue GROUP BY 1, 2, 3
