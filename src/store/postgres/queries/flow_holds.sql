-- Whether the token holds the task, which nobody can take away before the end of this transaction.
-- $1 task, $2 key, $3 secret
WITH l AS MATERIALIZED (SELECT e.ids, e.secrets, e.flags FROM $schema$.lease e WHERE e.key = $2::bigint FOR SHARE)
SELECT u.flags FROM l CROSS JOIN LATERAL unnest(l.ids, l.secrets, l.flags) u(task, secret, flags)
WHERE u.task = $1::bigint AND u.secret = $3::bigint
