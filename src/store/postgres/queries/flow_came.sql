-- Which of these flows, that lie down to sleep, may not, since their signal has come. Under the lock that whoever signals
-- takes first: one that comes later finds them sleeping. $1 tasks, sorted
SELECT f.task, f.came FROM $schema$.flow f WHERE f.task = ANY ($1::bigint[]) ORDER BY f.task FOR UPDATE
