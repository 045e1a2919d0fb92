-- name: task_insert
INSERT INTO stint_task (id, lane, state, wait, urgency, position, due_at, start_by, attempt, claim_no,
    generation, crashes, crash_from, flags, timeout_ms, created_at, updated_at, claimed_at, session,
    deadline_at, node, parent, token, retry, tags, unique_key, idem_key, debounce_key, progress, error,
    reason, input)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: task_load
SELECT id, lane, state, wait, urgency, position, due_at, start_by, attempt, claim_no,
    generation, crashes, crash_from, flags, timeout_ms, created_at, updated_at, claimed_at, session,
    deadline_at, node, parent, token, retry, tags, unique_key, idem_key, debounce_key, progress, error,
    reason, input
FROM stint_task WHERE id = ?;

-- name: task_save
UPDATE stint_task SET lane = ?, state = ?, wait = ?, urgency = ?, position = ?, due_at = ?, start_by = ?,
    attempt = ?, claim_no = ?, generation = ?, crashes = ?, crash_from = ?, flags = ?, timeout_ms = ?,
    updated_at = ?, claimed_at = ?, session = ?, deadline_at = ?, node = ?, token = ?, retry = ?, tags = ?,
    unique_key = ?, idem_key = ?, debounce_key = ?, progress = ?, error = ?, reason = ?
WHERE id = ?;

-- name: task_save_input
UPDATE stint_task SET input = ? WHERE id = ?;

-- name: task_claim
-- Of all between two ids. stint_token() knows which is whose; 16 is the flag kAlone.
UPDATE stint_task SET state = 1, wait = 0, attempt = attempt + 1, claim_no = claim_no + 1, flags = flags & ~16 | ?3,
    updated_at = ?4, claimed_at = ?4, session = ?5, node = ?6, token = stint_token(id),
    deadline_at = CASE WHEN timeout_ms > 0 THEN ?4 + timeout_ms * 1000 END, progress = NULL, reason = NULL, seat_group = nullif(?7, 0)
WHERE id BETWEEN ?1 AND ?2;

-- name: task_set_wait
UPDATE stint_task SET wait = ? WHERE id = ?;

-- name: task_delete
DELETE FROM stint_task WHERE id BETWEEN ? AND ?;

-- name: task_exists
SELECT 1 FROM stint_task WHERE id = ?;

-- name: task_held_check
SELECT session, token, flags FROM stint_task WHERE id = ?;

-- name: task_progress
UPDATE stint_task SET progress = ? WHERE id = ?;

-- name: history_insert
INSERT INTO stint_history_{p} (id, lane, state, urgency, position, due_at, start_by, attempt, claim_no, generation,
    crashes, flags, timeout_ms, created_at, updated_at, claimed_at, finished_at, node, parent, retry, tags,
    unique_key, idem_key, error, reason, output, input)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: history_load
SELECT id, lane, state, urgency, position, due_at, start_by, attempt, claim_no, generation, crashes, flags,
    timeout_ms, created_at, updated_at, claimed_at, finished_at, node, parent, retry, tags, unique_key, idem_key,
    error, reason, output, input
FROM stint_history_{p} WHERE id = ?;

-- name: history_exists
SELECT 1 FROM stint_history_{p} WHERE id = ?;

-- name: history_delete
DELETE FROM stint_history_{p} WHERE id = ?;

-- name: attempt_insert
INSERT INTO stint_attempt_{p} (task, claim_no, attempt, generation, session, node, started_at, finished_at,
    end, state, alone, token, error, exit_code, exit_signal, stderr_tail)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: attempt_list
SELECT task, claim_no, attempt, generation, session, node, started_at, finished_at, end, state, alone, token,
    error, exit_code, exit_signal, stderr_tail
FROM stint_attempt_{p} WHERE task = ?;

-- name: attempt_find_token
SELECT state FROM stint_attempt_{p} WHERE task = ? AND token = ?;

-- name: audit_insert
INSERT INTO stint_audit_{p} (seq, task, tenant, from_state, to_state, event, attempt, generation, at, session,
    actor, reason)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: audit_of_task
SELECT seq, task, tenant, from_state, to_state, event, attempt, generation, at, session, actor, reason
FROM stint_audit_{p} WHERE task = ? AND seq > ? ORDER BY seq LIMIT ?;

-- name: audit_all
SELECT seq, task, tenant, from_state, to_state, event, attempt, generation, at, session, actor, reason
FROM stint_audit_{p} WHERE seq > ? ORDER BY seq LIMIT ?;

-- name: tally_add
INSERT INTO stint_tally (period, lane, state, n) VALUES (?, ?, ?, ?)
ON CONFLICT (period, lane, state) DO UPDATE SET n = n + excluded.n;

-- name: tally_list
SELECT lane, state, sum(n) FROM stint_tally GROUP BY lane, state;

-- name: tally_live
SELECT lane, state, n FROM stint_tally WHERE period = 0;

-- name: counter_raise
UPDATE stint_counter SET next = ?1 WHERE name = 'task' AND next < ?1;

-- name: counter_take
UPDATE stint_counter SET next = next + ? WHERE name = ? RETURNING next;

-- name: tally_one
SELECT n FROM stint_tally WHERE period = ? AND lane = ? AND state = ?;

-- name: history_newest
SELECT max(id) FROM stint_history_{p};
