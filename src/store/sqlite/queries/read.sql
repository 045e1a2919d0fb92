-- name: identity
SELECT id FROM stint_identity;

-- name: get_task
SELECT t.id, t.lane, t.state, t.wait, t.urgency, t.position, t.due_at, t.start_by, t.attempt, t.claim_no,
    t.generation, t.crashes, t.crash_from, t.flags, t.timeout_ms, t.created_at, t.updated_at, t.claimed_at,
    t.session, t.deadline_at, t.node, t.parent, t.token, t.retry, t.tags, t.unique_key, t.idem_key,
    t.debounce_key, t.progress, t.error, t.reason, t.input, s.id, s.lease_until
FROM stint_task t LEFT JOIN stint_session s ON s.no = t.session
WHERE t.id = ?;

-- name: list_task
SELECT t.id, t.lane, t.state, t.wait, t.urgency, t.position, t.due_at, t.start_by, t.attempt, t.claim_no,
    t.generation, t.crashes, t.crash_from, t.flags, t.timeout_ms, t.created_at, t.updated_at, t.claimed_at,
    t.session, t.deadline_at, t.node, t.parent, t.token, t.retry, t.tags, t.unique_key, t.idem_key,
    t.debounce_key, t.progress, t.error, t.reason, t.input, s.id, s.lease_until
FROM stint_task t LEFT JOIN stint_session s ON s.no = t.session
WHERE t.id < ? ORDER BY t.id DESC;

-- name: list_history
SELECT id, lane, state, urgency, position, due_at, start_by, attempt, claim_no, generation, crashes, flags,
    timeout_ms, created_at, updated_at, claimed_at, finished_at, node, parent, retry, tags, unique_key, idem_key,
    error, reason, output, input
FROM stint_history_{p} WHERE id < ? ORDER BY id DESC;

-- name: lane_get
SELECT tenant, queue, type, placement FROM stint_lane WHERE id = ?;

-- name: lane_queues
SELECT DISTINCT queue FROM stint_lane WHERE type <> '';

-- name: session_get
SELECT state, lease_until FROM stint_session WHERE id = ?;

-- name: queue_paused
SELECT paused FROM stint_queue WHERE name = ?;

-- name: crowds
SELECT count(*), max(id) FROM stint_task
WHERE lane IN (SELECT id FROM stint_lane WHERE queue = ?) AND wait > 0
GROUP BY lane, wait = 6, due_at <= ?, start_by IS NOT NULL AND start_by <= ?, flags & 6;

-- name: running_attempt
SELECT t.id, t.claim_no, t.attempt, t.generation, s.id, t.node, t.claimed_at, t.flags, t.token
FROM stint_task t LEFT JOIN stint_session s ON s.no = t.session
WHERE t.id = ? AND t.state = 1;

-- name: idem_task
SELECT task FROM stint_idempotency WHERE tenant = ? AND key = ? AND expires_at > ?;
