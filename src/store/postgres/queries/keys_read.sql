-- What the keys stand for now. kind 0 unique, 1 debounce, 2 throttle, 3 idempotency, 4 id. $1 kind, $2 tenant, $3 type, $4 key
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
k AS MATERIALIZED (SELECT u.* FROM unnest($1::smallint[], $2::bigint[], $3::text[], $4::text[]) WITH ORDINALITY u(kind, tenant, type, key, ord))
SELECT k.ord, x.task, ''::text, n.t FROM n, k CROSS JOIN LATERAL (
    SELECT f.* FROM $schema$.live_key f WHERE f.tenant = k.tenant AND f.kind = k.kind AND f.type = k.type AND f.key = k.key OFFSET 0) x
WHERE k.kind < 2
UNION ALL
SELECT k.ord, x.task, ''::text, n.t FROM n, k CROSS JOIN LATERAL (
    SELECT f.* FROM $schema$.throttle_key f WHERE f.tenant = k.tenant AND f.type = k.type AND f.key = k.key OFFSET 0) x
WHERE k.kind = 2 AND x.until > n.t
UNION ALL
SELECT k.ord, x.task, x.hash, n.t FROM n, k CROSS JOIN LATERAL (
    SELECT f.* FROM $schema$.idem_key f WHERE f.tenant = k.tenant AND f.key = k.key OFFSET 0) x
WHERE k.kind = 3 AND x.expires_at > n.t
UNION ALL
SELECT NULL, NULL, ''::text, n.t FROM n
