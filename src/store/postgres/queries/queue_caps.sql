-- Locks the queues that have a cap and tells it. $1 names
SELECT q.name, q.id, q.cap FROM $schema$.queue q WHERE q.name = ANY ($1::text[]) AND q.cap IS NOT NULL ORDER BY q.id FOR NO KEY UPDATE
