-- name: lane_list
SELECT id, tenant, queue, type, placement FROM stint_lane WHERE type <> '';

-- name: lane_add
INSERT INTO stint_lane (tenant, queue, type, placement) VALUES (?, ?, ?, ?) RETURNING id;

-- name: queue_list
SELECT name, paused, cap, keep_complete_ms, keep_dead_ms, keep_cancelled_ms, changed_by, changed_at FROM stint_queue;

-- name: queue_set
INSERT INTO stint_queue (name, paused, cap, keep_complete_ms, keep_dead_ms, keep_cancelled_ms, changed_by, changed_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET paused = excluded.paused, cap = excluded.cap,
    keep_complete_ms = excluded.keep_complete_ms, keep_dead_ms = excluded.keep_dead_ms,
    keep_cancelled_ms = excluded.keep_cancelled_ms, changed_by = excluded.changed_by, changed_at = excluded.changed_at;

-- name: type_list
SELECT name, queue, priority, retry, timeout_ms, isolated, revision, updated_at, placement FROM stint_type ORDER BY name;

-- name: type_set
INSERT INTO stint_type (name, queue, priority, retry, timeout_ms, isolated, placement, revision, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?)
ON CONFLICT (name) DO UPDATE SET queue = excluded.queue, priority = excluded.priority, retry = excluded.retry,
    timeout_ms = excluded.timeout_ms, isolated = excluded.isolated, placement = excluded.placement, revision = revision + 1,
    updated_at = excluded.updated_at;

-- name: node_seen
INSERT INTO stint_node (hostname, last_seen) VALUES (?, ?)
ON CONFLICT (hostname) DO UPDATE SET last_seen = excluded.last_seen
RETURNING id;

-- name: node_touch
UPDATE stint_node SET last_seen = ? WHERE id = ?;

-- name: node_list
SELECT id, hostname, last_seen FROM stint_node ORDER BY hostname;

-- name: session_add
INSERT INTO stint_session (id, node, hostname, pid, state, worker_state, slots, running, queues, types, labels, version,
    started_at, renewed_at, lease_until, opener_handle, opener_process)
VALUES (?, ?, ?, ?, 0, '', ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?)
-- An id that is there already stays as it is: a session that is over is never brought back.
ON CONFLICT (id) DO UPDATE SET node = node
RETURNING node;

-- name: session_find
SELECT no, node, state, lease_until, hostname FROM stint_session WHERE id = ?;

-- name: session_of_no
SELECT id, hostname FROM stint_session WHERE no = ?;

-- name: session_list
SELECT id, node, hostname, pid, state, worker_state, slots, running, queues, types, version, started_at,
    renewed_at, lease_until, labels
FROM stint_session ORDER BY id;

-- name: session_renew
UPDATE stint_session SET state = ?, worker_state = ?, running = ?, renewed_at = ?, lease_until = ? WHERE no = ?;

-- name: session_end
UPDATE stint_session SET state = ?, lease_until = min(lease_until, ?) WHERE no = ?;

-- name: session_lapse
UPDATE stint_session SET lease_until = min(lease_until, ?) WHERE no = ?;

-- name: session_lapsed
SELECT no, id, hostname FROM stint_session WHERE state < 2 AND lease_until <= ? ORDER BY lease_until LIMIT ?;

-- name: session_openers
SELECT no, id, opener_handle, opener_process FROM stint_session WHERE state < 2;

-- name: session_over_holding
SELECT no, id, hostname FROM stint_session s
WHERE state >= 2 AND EXISTS (SELECT 1 FROM stint_task t WHERE t.session = s.no) ORDER BY no LIMIT ?;

-- name: session_old
SELECT no FROM stint_session s WHERE state >= 2 AND renewed_at <= ?
    AND NOT EXISTS (SELECT 1 FROM stint_task t WHERE t.session = s.no) LIMIT ?;

-- name: session_remove
DELETE FROM stint_session WHERE no = ?;
