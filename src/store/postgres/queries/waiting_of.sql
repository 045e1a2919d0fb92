-- How many wait in each of the (locked) queues, as far as its cap. $1 queue ids
SELECT q.id, $schema$.waiting_(q.id, q.cap) FROM $schema$.queue q WHERE q.id = ANY ($1::int[])
