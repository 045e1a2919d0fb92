-- name: wait_set
INSERT OR REPLACE INTO stint_wait (task, pending, failed, total, on_failure, any, need_success, started, open)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: wait_load
SELECT pending, failed, total, on_failure, any, need_success, started FROM stint_wait WHERE task = ? AND open = 1;

-- name: wait_tell
UPDATE stint_wait SET pending = pending - ?2, failed = failed + ?3 WHERE task = ?1;

-- name: wait_close
UPDATE stint_wait SET open = 0 WHERE task = ?;

-- name: wait_pending
SELECT pending FROM stint_wait WHERE task = ? AND open = 1;

-- name: wait_remove
DELETE FROM stint_wait WHERE task = ?;

-- name: wait_member_add
INSERT INTO stint_wait_member (waiter, no, asked, task, ended) VALUES (?, ?, ?, ?, ?);

-- name: wait_member_list
SELECT asked, task, ended FROM stint_wait_member WHERE waiter = ? ORDER BY no;

-- name: wait_member_end
UPDATE stint_wait_member SET ended = ?2 WHERE task = ?1 AND ended IS NULL RETURNING waiter;

-- name: wait_member_failed
SELECT asked, task, ended FROM stint_wait_member WHERE waiter = ? AND ended IN (6, 7) ORDER BY no LIMIT 1;

-- name: wait_member_rest
SELECT task FROM stint_wait_member WHERE waiter = ? AND ended IS NULL ORDER BY no;

-- name: wait_pending_on
SELECT m.task FROM stint_wait w JOIN stint_wait_member m ON m.waiter = w.task
WHERE w.task = ? AND w.open = 1 AND m.ended IS NULL ORDER BY m.no;

-- name: wait_member_remove
DELETE FROM stint_wait_member WHERE waiter = ?;

-- name: task_children
SELECT id FROM stint_task WHERE parent = ? ORDER BY id;

-- name: history_children
SELECT id FROM stint_history_{p} WHERE parent = ? ORDER BY id;

-- name: task_add_flags
UPDATE stint_task SET flags = flags | ?2 WHERE id = ?1 AND flags & ?2 = 0;

-- name: task_state
SELECT state, lane FROM stint_task WHERE id = ?;

-- name: history_state
SELECT state, lane FROM stint_history_{p} WHERE id = ?;

-- name: check_wait
SELECT w.task FROM stint_wait w LEFT JOIN stint_task t ON t.id = w.task
WHERE t.id IS NULL OR w.open <> (t.state = 2)
UNION ALL
SELECT t.id FROM stint_task t WHERE t.state = 2 AND NOT EXISTS (SELECT 1 FROM stint_wait w WHERE w.task = t.id)
UNION ALL
SELECT w.task FROM stint_wait w
WHERE w.pending <> (SELECT count(*) FROM stint_wait_member m WHERE m.waiter = w.task AND m.ended IS NULL)
   OR w.failed <> (SELECT count(*) FROM stint_wait_member m WHERE m.waiter = w.task AND m.ended IN (6, 7))
UNION ALL
SELECT m.waiter FROM stint_wait_member m JOIN stint_wait w ON w.task = m.waiter
WHERE m.ended IS NULL AND NOT EXISTS (SELECT 1 FROM stint_task t WHERE t.id = m.task AND t.flags & 32)
LIMIT 10;
