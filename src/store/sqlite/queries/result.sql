-- name: result_make
INSERT INTO stint_result (task, total, errors, look_at) VALUES (?, 0, 0, ?) ON CONFLICT DO NOTHING;

-- name: result_items
SELECT total, errors FROM stint_result WHERE task = ?;

-- name: result_any
SELECT 1 FROM stint_result LIMIT 1;

-- name: result_load
SELECT total, errors, checkpoint, checkpoint_by, checkpoint_at FROM stint_result WHERE task = ?;

-- name: result_count
UPDATE stint_result SET total = total + ?2, errors = errors + ?3 WHERE task = ?1;

-- name: checkpoint_set
UPDATE stint_result SET checkpoint = ?2, checkpoint_by = ?3, checkpoint_at = ?4 WHERE task = ?1;

-- name: item_failed
SELECT error IS NOT NULL FROM stint_item WHERE task = ? AND key = ?;

-- name: item_set
INSERT INTO stint_item (task, key, action, before, after, error, claim_no, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET action = excluded.action, before = excluded.before, after = excluded.after, error = excluded.error,
    claim_no = excluded.claim_no, at = excluded.at;

-- name: item_list
SELECT key, action, before, after, error, claim_no, at FROM stint_item WHERE task = ? AND key > ? ORDER BY key LIMIT ?;

-- name: item_list_errors
SELECT key, action, before, after, error, claim_no, at FROM stint_item
WHERE task = ? AND key > ? AND error IS NOT NULL ORDER BY key LIMIT ?;

-- name: result_look
SELECT task FROM stint_result WHERE look_at <= ? ORDER BY look_at LIMIT ?;

-- name: result_look_later
UPDATE stint_result SET look_at = ?2 WHERE task = ?1;

-- name: item_forget
DELETE FROM stint_item WHERE task = ?1 AND key IN (SELECT key FROM stint_item WHERE task = ?1 LIMIT ?2);

-- name: result_forget
DELETE FROM stint_result WHERE task = ?;

-- name: deletion_find
SELECT id, tenant, kind, key, initiator, steps, state, marked_at, delete_at, task FROM stint_deletion
WHERE tenant = ? AND kind = ? AND key = ?;

-- name: deletion_add
INSERT INTO stint_deletion (tenant, kind, key, initiator, steps, state, marked_at, delete_at, due_at)
VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?7, ?7) RETURNING id;

-- name: deletion_remove
DELETE FROM stint_deletion WHERE id = ?;

-- name: deletion_list
SELECT id, tenant, kind, key, initiator, steps, state, marked_at, delete_at, task FROM stint_deletion
WHERE (tenant, kind, key) > (?, ?, ?) ORDER BY tenant, kind, key LIMIT ?;

-- name: deletion_due
SELECT id, tenant, kind, key, initiator, steps, state, marked_at, delete_at, task FROM stint_deletion
WHERE tenant = ? AND kind = ? AND due_at <= ? AND state < 2 AND state = 0 ORDER BY due_at, id LIMIT ?;

-- name: deletion_lapsed
-- Those that a node took and did not begin in time, of whatever pace: theirs was counted.
SELECT id, tenant, kind, key, initiator, steps, state, marked_at, delete_at, task FROM stint_deletion
WHERE state = 1 AND due_at <= ? ORDER BY due_at, id LIMIT ?;

-- name: deletion_move
UPDATE stint_deletion SET state = ?2, due_at = ?3, task = ?4 WHERE id = ?1;

-- name: deletion_forget
DELETE FROM stint_deletion WHERE id IN (SELECT id FROM stint_deletion WHERE state = 2 AND due_at <= ? LIMIT 500);

-- name: pace_make
INSERT INTO stint_deletion_pace (tenant, kind, cap, every_ms, next_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: pace_set
INSERT INTO stint_deletion_pace (tenant, kind, cap, every_ms, next_at) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT DO UPDATE SET cap = ?3, every_ms = ?4, next_at = min(next_at, ?5 + ?4 * 1000);

-- name: pace_due
SELECT tenant, kind, cap, every_ms FROM stint_deletion_pace WHERE next_at <= ?;

-- name: pace_next
UPDATE stint_deletion_pace SET next_at = ?3 WHERE tenant = ?1 AND kind = ?2;

-- name: pace_any
-- Whether a look by the writer would find something: a kind whose turn it is and which has one that is due.
SELECT 1 FROM stint_deletion_pace p WHERE p.next_at <= ?1 AND EXISTS (SELECT 1 FROM stint_deletion d
    WHERE d.tenant = p.tenant AND d.kind = p.kind AND d.due_at <= ?1 AND d.state < 2 AND d.state = 0)
UNION ALL SELECT 1 FROM stint_deletion WHERE state = 1 AND due_at <= ?1
UNION ALL SELECT 1 FROM stint_deletion WHERE state = 2 AND due_at <= ?1 LIMIT 1;
