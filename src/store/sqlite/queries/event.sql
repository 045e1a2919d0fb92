-- name: event_add
INSERT INTO stint_published (tenant, source, id, type, data, time, cause, depth, state, reason, tries, published_at,
    due_at, processed_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?) RETURNING no;

-- name: event_known
SELECT no, type, data FROM stint_published WHERE tenant = ? AND source = ? AND id = ?;

-- name: event_before
SELECT event, depth FROM stint_firing WHERE task = ? ORDER BY depth DESC, event DESC LIMIT 1;

-- name: event_newest
SELECT max(no) FROM stint_published;

-- name: task_parent
SELECT parent FROM stint_task WHERE id = ?;

-- name: history_parent
SELECT parent FROM stint_history_{p} WHERE id = ?;

-- name: event_due
SELECT no FROM stint_published WHERE state = 0 AND due_at <= ? ORDER BY due_at, no LIMIT ?;

-- name: event_take
UPDATE stint_published SET due_at = ?, tries = tries + 1 WHERE no = ?;

-- name: event_get
SELECT no, tenant, source, id, type, data, time, cause, depth, state, reason, tries, published_at, processed_at
FROM stint_published WHERE no = ?;

-- name: event_end
UPDATE stint_published SET state = ?, reason = ?, due_at = ?, processed_at = ? WHERE no = ?;

-- name: event_list
SELECT no, tenant, source, id, type, data, time, cause, depth, state, reason, tries, published_at, processed_at
FROM stint_published
WHERE no < ?1 AND (?2 IS NULL OR tenant = ?2) AND (?3 IS NULL OR type IN (SELECT value FROM json_each(?3)))
    AND (?4 IS NULL OR state IN (SELECT value FROM json_each(?4)))
ORDER BY no DESC LIMIT ?5;

-- name: event_counts
SELECT type, state, count(*) FROM stint_published GROUP BY type, state;

-- name: event_old
SELECT no FROM stint_published WHERE processed_at <= ? ORDER BY processed_at LIMIT ?;

-- name: event_remove
DELETE FROM stint_published WHERE no = ?;

-- name: firing_add
INSERT INTO stint_firing (event, workflow, name, tenant, version, kind, task, depth, message, at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: firing_add_once
INSERT OR IGNORE INTO stint_firing (event, workflow, name, tenant, version, kind, task, depth, message, at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: firing_names
SELECT workflow, name FROM stint_firing WHERE event = ? AND workflow > '';

-- name: firing_remove
DELETE FROM stint_firing WHERE event = ?;

-- name: firing_of_event
SELECT event, workflow, name, tenant, version, kind, task, message, at FROM stint_firing
WHERE event = ? ORDER BY workflow DESC, name DESC LIMIT ?;

-- name: firing_of_task
SELECT event, workflow, name, tenant, version, kind, task, message, at FROM stint_firing
WHERE task = ? ORDER BY event DESC, workflow DESC, name DESC LIMIT ?;

-- name: firing_of_workflow
SELECT event, workflow, name, tenant, version, kind, task, message, at FROM stint_firing
WHERE tenant = ? AND workflow = ? ORDER BY event DESC, name DESC LIMIT ?;

-- name: firing_all
SELECT event, workflow, name, tenant, version, kind, task, message, at FROM stint_firing
ORDER BY event DESC, workflow DESC, name DESC LIMIT ?;

-- name: workflow_get
SELECT tenant, name, version, definition, updated_at, updated_by FROM stint_workflow WHERE tenant = ? AND name = ?;

-- name: workflow_list
SELECT tenant, name, version, definition, updated_at, updated_by FROM stint_workflow ORDER BY tenant, name;

-- name: workflow_set
INSERT INTO stint_workflow (tenant, name, version, definition, updated_at, updated_by) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, name) DO UPDATE SET version = excluded.version, definition = excluded.definition,
    updated_at = excluded.updated_at, updated_by = excluded.updated_by;

-- name: workflow_remove
DELETE FROM stint_workflow WHERE tenant = ? AND name = ?;

-- name: workflow_count
SELECT count(*) FROM stint_workflow;

-- name: workflow_revision
SELECT next FROM stint_counter WHERE name = 'workflow';

-- name: member_list
SELECT DISTINCT tenant, type FROM stint_workflow_member;

-- name: member_add
INSERT INTO stint_workflow_member (tenant, workflow, type) VALUES (?, ?, ?);

-- name: member_clear
DELETE FROM stint_workflow_member WHERE tenant = ? AND workflow = ?;

-- name: round_newest
SELECT id, tenant, workflow, name, key, generation, mask, state, task, message, created_at, expires_at, ended_at
FROM stint_join_round WHERE tenant = ? AND workflow = ? AND name = ? AND key = ? ORDER BY generation DESC LIMIT 1;

-- name: round_set
INSERT INTO stint_join_round (tenant, workflow, name, key, generation, mask, state, task, message, created_at, expires_at,
    ended_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, workflow, name, key, generation) DO UPDATE SET mask = excluded.mask, state = excluded.state,
    task = excluded.task, message = excluded.message, ended_at = excluded.ended_at
RETURNING id;

-- name: round_lapsed
SELECT id, tenant, workflow, name, key, generation, mask, state, task, message, created_at, expires_at, ended_at
FROM stint_join_round WHERE state = 0 AND expires_at <= ? ORDER BY expires_at LIMIT ?;

-- name: round_list
SELECT id, tenant, workflow, name, key, generation, mask, state, task, message, created_at, expires_at, ended_at
FROM stint_join_round
WHERE (?1 IS NULL OR tenant = ?1) AND (?2 IS NULL OR workflow = ?2)
    AND (?3 IS NULL OR state IN (SELECT value FROM json_each(?3))) AND id < ?5
ORDER BY id DESC LIMIT ?4;

-- name: round_old
SELECT id FROM stint_join_round WHERE ended_at <= ? ORDER BY ended_at LIMIT ?;

-- name: round_remove
DELETE FROM stint_join_round WHERE id = ?;

-- name: generation_forget
-- The highest generation of rounds that are forgotten stands in a row of no join's.
INSERT INTO stint_join_once (tenant, workflow, name, key, generation)
SELECT 0, '', '', '', generation FROM stint_join_round WHERE id = ?
ON CONFLICT (tenant, workflow, name, key) DO UPDATE SET generation = max(generation, excluded.generation);

-- name: generation_forgotten
SELECT generation FROM stint_join_once WHERE tenant = 0 AND workflow = '' AND name = '' AND key = '';

-- name: part_list
SELECT member, type, task, output, completed_at FROM stint_join_part WHERE round = ? ORDER BY member;

-- name: part_set
INSERT INTO stint_join_part (round, member, type, task, output, completed_at) VALUES (?, ?, ?, ?, ?, ?);

-- name: part_remove
DELETE FROM stint_join_part WHERE round = ?;

-- name: once_get
SELECT generation FROM stint_join_once WHERE tenant = ? AND workflow = ? AND name = ? AND key = ?;

-- name: once_set
INSERT INTO stint_join_once (tenant, workflow, name, key, generation) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (tenant, workflow, name, key) DO UPDATE SET generation = excluded.generation;

-- name: once_clear
DELETE FROM stint_join_once WHERE tenant = ? AND workflow = ? AND name NOT IN (SELECT value FROM json_each(?));
