-- What the keys stand for now. kind 0 unique, 1 debounce, 2 throttle, 3 idempotency, 4 id. $1 kind, $2 tenant, $3 type, $4 key
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
k AS MATERIALIZED (SELECT u.* FROM unnest($1::smallint[], $2::bigint[], $3::text[], $4::text[]) WITH ORDINALITY u(kind, tenant, type, key, ord))
SELECT k.ord, x.task, ''::text, n.t FROM n, k JOIN $schema$.live_key x ON x.tenant = k.tenant AND x.kind = k.kind AND x.type = k.type AND x.key = k.key
WHERE k.kind < 2
UNION ALL
SELECT k.ord, x.task, ''::text, n.t FROM n, k JOIN $schema$.throttle_key x ON x.tenant = k.tenant AND x.type = k.type AND x.key = k.key
WHERE k.kind = 2 AND x.until > n.t
UNION ALL
SELECT k.ord, x.task, x.hash, n.t FROM n, k JOIN $schema$.idem_key x ON x.tenant = k.tenant AND x.key = k.key WHERE k.kind = 3 AND x.expires_at > n.t
UNION ALL
SELECT NULL, NULL, ''::text, n.t FROM n
