-- What the keys stand for from now on. kind 0 unique, 1 debounce, 2 throttle, 3 idempotency. A unique key that stands for a live
-- task already is a violation (23505): the locks were to prevent it.
-- $1 kind, $2 tenant, $3 type, $4 key, $5 task, $6 hash, $7 lasts_ms
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
u AS MATERIALIZED (
    SELECT u.*, n.t + u.lasts_ms * interval '1 millisecond' AS until FROM n,
        unnest($1::smallint[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::bigint[]) u(kind, tenant, type, key, task, hash, lasts_ms)),
k AS (INSERT INTO $schema$.live_key(tenant, kind, type, key, task) SELECT tenant, kind, type, key, task FROM u WHERE kind = 0),
l AS (
    INSERT INTO $schema$.live_key(tenant, kind, type, key, task) SELECT tenant, kind, type, key, task FROM u WHERE kind = 1
    ON CONFLICT (tenant, kind, type, key) DO UPDATE SET task = excluded.task),
h AS (
    INSERT INTO $schema$.throttle_key(tenant, type, key, task, until) SELECT tenant, type, key, task, until FROM u WHERE kind = 2
    ON CONFLICT (tenant, type, key) DO UPDATE SET task = excluded.task, until = excluded.until)
INSERT INTO $schema$.idem_key(tenant, key, task, hash, expires_at) SELECT tenant, key, task, hash, until FROM u WHERE kind = 3
ON CONFLICT (tenant, key) DO UPDATE SET task = excluded.task, hash = excluded.hash, expires_at = excluded.expires_at
