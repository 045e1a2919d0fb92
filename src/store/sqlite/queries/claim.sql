-- name: ready_heads
-- Whole rows, as task_load: most that are read are taken.
SELECT id, lane, state, wait, urgency, position, due_at, start_by, attempt, claim_no,
    generation, crashes, crash_from, flags, timeout_ms, created_at, updated_at, claimed_at, session,
    deadline_at, node, parent, token, retry, tags, unique_key, idem_key, debounce_key, progress, error,
    reason, input
FROM stint_task
WHERE wait = 1 AND lane = ? AND (urgency, position) > (?, ?)
ORDER BY urgency, position LIMIT ?;

-- name: suspect_heads
SELECT id, lane, state, wait, urgency, position, due_at, start_by, attempt, claim_no,
    generation, crashes, crash_from, flags, timeout_ms, created_at, updated_at, claimed_at, session,
    deadline_at, node, parent, token, retry, tags, unique_key, idem_key, debounce_key, progress, error,
    reason, input
FROM stint_task
WHERE wait = 3 AND lane = ? AND (urgency, position) > (?, ?)
ORDER BY urgency, position LIMIT ?;

-- name: later_due
SELECT id FROM stint_task WHERE wait = 2 AND lane = ? AND due_at <= ? ORDER BY due_at LIMIT ?;

-- name: later_first
SELECT due_at FROM stint_task WHERE wait = 2 AND lane = ? ORDER BY due_at LIMIT 1;

-- name: later_suspect_due
SELECT id FROM stint_task WHERE wait = 5 AND lane = ? AND due_at <= ? ORDER BY due_at LIMIT ?;

-- name: later_suspect_first
SELECT due_at FROM stint_task WHERE wait = 5 AND lane = ? ORDER BY due_at LIMIT 1;

-- name: held_by
SELECT id FROM stint_task WHERE session = ? AND coalesce(retry, '') NOT IN (SELECT value FROM json_each(?))
ORDER BY id LIMIT ?;

-- name: over_deadline
SELECT id FROM stint_task WHERE state = ? AND deadline_at IS NOT NULL AND deadline_at <= ?
    AND coalesce(retry, '') NOT IN (SELECT value FROM json_each(?))
ORDER BY deadline_at LIMIT ?;

-- name: start_by_passed
SELECT id FROM stint_task WHERE start_by IS NOT NULL AND wait > 0 AND start_by <= ? ORDER BY start_by LIMIT ?;

-- name: unknown_of_lane
SELECT id FROM stint_task WHERE flags & 1 AND wait > 0 AND lane = ? LIMIT ?;
