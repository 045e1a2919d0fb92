-- Whether the task is held with that token, and stays so while this transaction writes. $1 key of the lease, $2 task, $3 secret
SELECT 1 FROM (SELECT e.ids, e.secrets FROM $schema$.lease e WHERE e.key = $1::bigint FOR SHARE) l
CROSS JOIN LATERAL unnest(l.ids, l.secrets) u(task, secret) WHERE u.task = $2::bigint AND u.secret = $3::bigint
