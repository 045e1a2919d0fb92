-- name: idem_find
SELECT task, hash FROM stint_idempotency WHERE tenant = ? AND key = ? AND expires_at > ?;

-- name: idem_set
INSERT INTO stint_idempotency (tenant, key, task, hash, expires_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (tenant, key) DO UPDATE SET task = excluded.task, hash = excluded.hash, expires_at = excluded.expires_at;

-- name: idem_expired
SELECT tenant, key, task FROM stint_idempotency WHERE expires_at <= ? ORDER BY expires_at LIMIT ?;

-- name: idem_remove
DELETE FROM stint_idempotency WHERE tenant = ? AND key = ?;

-- name: unique_find
SELECT task FROM stint_unique WHERE tenant = ? AND type = ? AND key = ?;

-- name: unique_set
INSERT INTO stint_unique (tenant, type, key, task) VALUES (?, ?, ?, ?)
ON CONFLICT (tenant, type, key) DO UPDATE SET task = excluded.task;

-- name: unique_remove
DELETE FROM stint_unique WHERE tenant = ? AND type = ? AND key = ? AND task = ?;

-- name: debounce_find
SELECT task FROM stint_debounce WHERE tenant = ? AND type = ? AND key = ?;

-- name: debounce_set
INSERT INTO stint_debounce (tenant, type, key, task) VALUES (?, ?, ?, ?)
ON CONFLICT (tenant, type, key) DO UPDATE SET task = excluded.task;

-- name: debounce_remove
DELETE FROM stint_debounce WHERE tenant = ? AND type = ? AND key = ? AND task = ?;

-- name: throttle_find
SELECT task FROM stint_throttle WHERE tenant = ? AND type = ? AND key = ? AND expires_at > ?;

-- name: throttle_set
INSERT INTO stint_throttle (tenant, type, key, task, expires_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (tenant, type, key) DO UPDATE SET task = excluded.task, expires_at = excluded.expires_at;

-- name: throttle_expired
SELECT tenant, type, key FROM stint_throttle WHERE expires_at <= ? ORDER BY expires_at LIMIT ?;

-- name: throttle_remove
DELETE FROM stint_throttle WHERE tenant = ? AND type = ? AND key = ?;
