-- Takes tasks out of their leases, which the transaction has locked. $1 distinct keys, sorted; $2 tasks
WITH h AS MATERIALIZED (
    SELECT e.key, u.task, u.secret, u.flags, u.task = ANY ($2::bigint[]) AS mine
    FROM $schema$.lease e CROSS JOIN LATERAL unnest(e.ids, e.secrets, e.flags) u(task, secret, flags)
    WHERE e.key = ANY ($1::bigint[])),
k AS MATERIALIZED (
    SELECT key, array_agg(task) FILTER (WHERE NOT mine) AS ids, array_agg(secret) FILTER (WHERE NOT mine) AS secrets,
        array_agg(flags) FILTER (WHERE NOT mine) AS flags
    FROM h GROUP BY key HAVING bool_or(mine)),
lu AS (UPDATE $schema$.lease e SET ids = k.ids, secrets = k.secrets, flags = k.flags FROM k WHERE e.key = k.key AND e.key = ANY ($1::bigint[]) AND k.ids IS NOT NULL)
DELETE FROM $schema$.lease e WHERE e.key = ANY (ARRAY(SELECT key FROM k WHERE ids IS NULL))
