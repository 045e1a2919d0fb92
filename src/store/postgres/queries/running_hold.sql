-- Which of the tasks still run; they do so until this transaction ends. $1 tasks
SELECT u.task FROM (SELECT e.ids FROM $schema$.lease e WHERE e.ids && $1::bigint[] ORDER BY e.key FOR UPDATE) l
CROSS JOIN LATERAL unnest(l.ids) u(task) WHERE u.task = ANY ($1::bigint[])
