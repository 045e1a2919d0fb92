-- $1 distinct keys, sorted; $2 task, $3 key, $4 secret, $5 step, $6 done, $7 total, $8 message. Kept only for who holds the task.
WITH l AS MATERIALIZED (SELECT e.key, e.ids, e.secrets FROM $schema$.lease e WHERE e.key = ANY ($1::bigint[]) ORDER BY e.key FOR SHARE),
h AS MATERIALIZED (SELECT l.key, u.task, u.secret FROM l CROSS JOIN LATERAL unnest(l.ids, l.secrets) u(task, secret))
INSERT INTO $schema$.progress(task, secret, step, done, total, message)
SELECT x.task, x.secret, x.step, x.done, x.total, x.message
FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[], $8::text[]) x(task, key, secret, step, done, total, message)
JOIN h ON h.task = x.task AND h.key = x.key AND h.secret = x.secret
ORDER BY x.task
ON CONFLICT (task) DO UPDATE SET secret = excluded.secret, step = excluded.step, done = excluded.done, total = excluded.total,
    message = excluded.message
