-- How many wait in each of the (locked) queues. $1 queue ids
SELECT l.queue, sum((SELECT count(*) FROM $schema$.ready r WHERE r.lane = l.id) + (SELECT count(*) FROM $schema$.later w WHERE w.lane = l.id))::bigint
FROM $schema$.lane l WHERE l.queue = ANY ($1::int[]) GROUP BY l.queue
