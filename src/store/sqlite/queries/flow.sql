-- name: flow_find
SELECT task, tenant, steps, bytes, signals, waiting, awaits, came, started_at FROM stint_flow WHERE task = ?;

-- name: flow_make
INSERT INTO stint_flow (task, tenant, steps, bytes, signals, waiting, awaits, came, started_at, look_at)
VALUES (?, ?, 0, 0, 0, 0, NULL, 0, ?, ?) ON CONFLICT DO NOTHING;

-- name: flow_save
UPDATE stint_flow SET steps = ?, bytes = ?, signals = ?, waiting = ?, awaits = ?, came = ? WHERE task = ?;

-- name: flow_came
SELECT came FROM stint_flow WHERE task = ?;

-- name: flow_list
SELECT task, tenant, steps, bytes, signals, waiting, awaits, came, started_at FROM stint_flow
WHERE task < ?1 AND (?2 IS NULL OR tenant = ?2) ORDER BY task DESC LIMIT ?3;

-- name: flow_look
SELECT task FROM stint_flow WHERE look_at <= ? ORDER BY look_at LIMIT ?;

-- name: flow_look_later
UPDATE stint_flow SET look_at = ?2 WHERE task = ?1;

-- name: flow_forget
DELETE FROM stint_flow WHERE task = ?;

-- name: flow_forget_steps
DELETE FROM stint_flow_step WHERE task = ?;

-- name: flow_forget_signals
DELETE FROM stint_flow_signal WHERE task = ?;

-- name: flow_steps
SELECT no, name, occurrence, kind, state, about, hash, result, child, due_at, late, at, ended_at
FROM stint_flow_step WHERE task = ? ORDER BY no;

-- name: flow_step
SELECT no, name, occurrence, kind, state, about, hash, result, child, due_at, late, at, ended_at
FROM stint_flow_step WHERE task = ? AND name = ? AND occurrence = ?;

-- name: flow_step_add
INSERT INTO stint_flow_step (task, no, name, occurrence, kind, state, about, hash, result, child, due_at, late, at, ended_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: flow_step_end
UPDATE stint_flow_step SET state = ?3, result = ?4, ended_at = ?5 WHERE task = ?1 AND no = ?2;

-- name: flow_signals
SELECT no, name, id, payload, at, step FROM stint_flow_signal WHERE task = ? ORDER BY no;

-- name: flow_signal_next
SELECT no, name, id, payload, at, step FROM stint_flow_signal
WHERE task = ? AND name = ? AND step IS NULL ORDER BY no LIMIT 1;

-- name: flow_signal_by_id
SELECT no, name, id, payload, at, step FROM stint_flow_signal WHERE task = ? AND id = ?;

-- name: flow_signal_add
INSERT INTO stint_flow_signal (task, no, name, id, payload, at, step) VALUES (?, ?, ?, ?, ?, ?, NULL);

-- name: flow_signal_take
UPDATE stint_flow_signal SET step = ?3 WHERE task = ?1 AND no = ?2;
