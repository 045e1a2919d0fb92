-- name: period_find
SELECT id FROM stint_period WHERE kind = ? AND keep_ms = ? AND starts_at = ?;

-- name: period_add
INSERT INTO stint_period (kind, keep_ms, starts_at, ends_at) VALUES (?, ?, ?, ?) RETURNING id;

-- name: period_list
SELECT id, kind, keep_ms, starts_at, ends_at FROM stint_period ORDER BY ends_at DESC, id DESC;

-- name: period_expired
SELECT id, kind, keep_ms FROM stint_period WHERE ends_at + keep_ms * 1000 <= ? ORDER BY id;

-- name: period_remove
DELETE FROM stint_period WHERE id = ?;

-- name: period_remove_tally
DELETE FROM stint_tally WHERE period = ?;

-- name: period_needed
-- What a live parent, or who waited for it, may still read stays. A flow reads a task once: until its step has ended.
SELECT 1 FROM stint_history_{p} h
WHERE h.parent IS NOT NULL AND EXISTS (SELECT 1 FROM stint_task p WHERE p.id = h.parent)
    AND NOT EXISTS (SELECT 1 FROM stint_flow f WHERE f.task = h.parent)
UNION ALL
SELECT 1 FROM stint_wait_member m JOIN stint_history_{p} h ON h.id = m.task
UNION ALL
SELECT 1 FROM stint_flow_step s JOIN stint_history_{p} h ON h.id = s.child JOIN stint_task v ON v.id = s.task
WHERE s.state = 0 AND s.child IS NOT NULL
LIMIT 1;

-- name: live_between
SELECT id FROM stint_task WHERE id BETWEEN ? AND ? LIMIT ?;

-- name: kept_between
-- Finished, but somebody may still read it.
SELECT h.id FROM stint_history_{p} h
WHERE h.parent IS NOT NULL AND h.id BETWEEN ?1 AND ?2 AND EXISTS (SELECT 1 FROM stint_task p WHERE p.id = h.parent)
    AND NOT EXISTS (SELECT 1 FROM stint_flow f WHERE f.task = h.parent)
UNION
SELECT h.id FROM stint_wait_member m JOIN stint_history_{p} h ON h.id = m.task WHERE m.task BETWEEN ?1 AND ?2
UNION
SELECT h.id FROM stint_flow_step s JOIN stint_history_{p} h ON h.id = s.child JOIN stint_task v ON v.id = s.task
WHERE s.state = 0 AND s.child IS NOT NULL AND s.child BETWEEN ?1 AND ?2
LIMIT ?3;

-- name: audit_range
-- One by one: only then each is a step into the index.
SELECT (SELECT min(task) FROM stint_audit_{p}), (SELECT max(task) FROM stint_audit_{p});

-- name: audit_carry
INSERT INTO stint_audit_{q} SELECT * FROM stint_audit_{p} WHERE task = ?;

-- name: attempt_range
SELECT (SELECT min(task) FROM stint_attempt_{p}), (SELECT max(task) FROM stint_attempt_{p});

-- name: attempt_carry
INSERT INTO stint_attempt_{q} SELECT * FROM stint_attempt_{p} WHERE task = ?;

-- name: create_history
CREATE TABLE stint_history_{p} (
    id INTEGER PRIMARY KEY,
    lane INTEGER NOT NULL,
    state INTEGER NOT NULL,
    urgency INTEGER NOT NULL,
    position INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    start_by INTEGER,
    attempt INTEGER NOT NULL,
    claim_no INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    timeout_ms INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    claimed_at INTEGER,
    finished_at INTEGER NOT NULL,
    node INTEGER,
    parent INTEGER,
    retry TEXT,
    tags TEXT,
    unique_key TEXT,
    idem_key TEXT,
    error TEXT,
    reason TEXT,
    output TEXT,
    input TEXT NOT NULL
) STRICT;
CREATE INDEX stint_history_{p}_parent ON stint_history_{p} (parent) WHERE parent IS NOT NULL;

-- name: create_attempt
CREATE TABLE stint_attempt_{p} (
    task INTEGER NOT NULL,
    claim_no INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    session BLOB,
    node INTEGER,
    started_at INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    end INTEGER NOT NULL,
    state INTEGER NOT NULL,
    alone INTEGER NOT NULL,
    token BLOB,
    error TEXT,
    exit_code INTEGER,
    exit_signal INTEGER,
    stderr_tail TEXT,
    PRIMARY KEY (task, claim_no)
) STRICT, WITHOUT ROWID;

-- name: create_audit
CREATE TABLE stint_audit_{p} (
    seq INTEGER PRIMARY KEY,
    task INTEGER NOT NULL,
    tenant INTEGER NOT NULL,
    from_state INTEGER,
    to_state INTEGER NOT NULL,
    event INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    at INTEGER NOT NULL,
    session BLOB,
    actor TEXT,
    reason TEXT
) STRICT;
CREATE INDEX stint_audit_{p}_task ON stint_audit_{p} (task);
CREATE TRIGGER stint_audit_{p}_no_update BEFORE UPDATE ON stint_audit_{p}
BEGIN SELECT RAISE(ABORT, 'the audit log cannot be changed'); END;
-- REPLACE removes the row that is in its way without asking the trigger below.
CREATE TRIGGER stint_audit_{p}_no_replace BEFORE INSERT ON stint_audit_{p}
WHEN EXISTS (SELECT 1 FROM stint_audit_{p} WHERE seq = NEW.seq)
BEGIN SELECT RAISE(ABORT, 'the audit log cannot be changed'); END;
CREATE TRIGGER stint_audit_{p}_no_delete BEFORE DELETE ON stint_audit_{p}
BEGIN SELECT RAISE(ABORT, 'the audit log cannot be changed'); END;

-- name: view_task_live
-- The columns are those of every store's view, in the same order. No JSON functions: a reader that
-- does not trust the schema may not call them from a view.
SELECT t.id, l.tenant AS tenant_id, t.parent AS parent_id, l.type, t.state AS status,
       255 - t.urgency AS priority, t.input, t.error AS output,
       CASE WHEN t.error IS NOT NULL THEN substr(t.error, -17) = '"retryable":true}' END AS retryable,
       max(t.attempt - 1, 0) AS retry_count, t.node AS executor,
       strftime('%Y-%m-%dT%H:%M:%fZ', t.created_at / 1e6, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', t.claimed_at / 1e6, 'unixepoch') AS claimed_at,
       NULL AS completed_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(s.lease_until, t.deadline_at) / 1e6, 'unixepoch') AS expires_at,
       l.queue,
       strftime('%Y-%m-%dT%H:%M:%fZ', t.due_at / 1e6, 'unixepoch') AS due_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', t.start_by / 1e6, 'unixepoch') AS start_by,
       t.attempt, t.claim_no, t.generation,
       strftime('%Y-%m-%dT%H:%M:%fZ', t.updated_at / 1e6, 'unixepoch') AS updated_at,
       t.tags, t.unique_key,
       CASE WHEN s.id IS NOT NULL THEN lower(substr(hex(s.id), 1, 8) || '-' || substr(hex(s.id), 9, 4) || '-' || substr(hex(s.id), 13, 4) || '-' || substr(hex(s.id), 17, 4) || '-' || substr(hex(s.id), 21, 12)) END AS lease_owner,
       strftime('%Y-%m-%dT%H:%M:%fZ', s.lease_until / 1e6, 'unixepoch') AS lease_timeout,
       t.attempt AS try_count,
       CASE WHEN t.retry IS NULL THEN 20
            ELSE nullif(CAST(substr(t.retry, instr(t.retry, '"max_attempts":') + 15) AS INTEGER), 0) END AS max_tries,
       CASE WHEN t.state = 1 THEN 'running' ELSE 'pending' END AS worker_status,
       CASE WHEN t.state = 1 THEN '' ELSE coalesce(t.reason, '') END AS reason,
       (t.flags & 8) <> 0 AS warning, t.error, (t.flags & 2) <> 0 AS cancel_requested,
       NULL AS run_time
FROM stint_task t JOIN stint_lane l ON l.id = t.lane LEFT JOIN stint_session s ON s.no = t.session

-- name: view_task_history
SELECT t.id, l.tenant, t.parent, l.type, t.state,
       255 - t.urgency AS priority, t.input, coalesce(t.output, t.error) AS output,
       CASE WHEN t.error IS NOT NULL THEN substr(t.error, -17) = '"retryable":true}' END AS retryable,
       max(t.attempt - 1, 0) AS retry_count, t.node AS executor,
       strftime('%Y-%m-%dT%H:%M:%fZ', t.created_at / 1e6, 'unixepoch'),
       strftime('%Y-%m-%dT%H:%M:%fZ', t.claimed_at / 1e6, 'unixepoch'),
       strftime('%Y-%m-%dT%H:%M:%fZ', t.finished_at / 1e6, 'unixepoch'),
       NULL, l.queue,
       strftime('%Y-%m-%dT%H:%M:%fZ', t.due_at / 1e6, 'unixepoch'),
       strftime('%Y-%m-%dT%H:%M:%fZ', t.start_by / 1e6, 'unixepoch'),
       t.attempt, t.claim_no, t.generation,
       strftime('%Y-%m-%dT%H:%M:%fZ', t.updated_at / 1e6, 'unixepoch'),
       t.tags, t.unique_key, NULL, NULL, t.attempt,
       CASE WHEN t.retry IS NULL THEN 20
            ELSE nullif(CAST(substr(t.retry, instr(t.retry, '"max_attempts":') + 15) AS INTEGER), 0) END AS max_tries,
       CASE WHEN t.state = 4 THEN 'done' ELSE 'error' END AS worker_status,
       coalesce(t.reason, '') AS reason,
       (t.flags & 8) <> 0 AS warning, t.error, (t.flags & 2) <> 0 AS cancel_requested,
       (t.finished_at - t.claimed_at) / 1e6 AS run_time
FROM stint_history_{p} t JOIN stint_lane l ON l.id = t.lane

-- name: view_audit_head
SELECT NULL AS id, NULL AS task_id, NULL AS tenant_id, NULL AS from_status, NULL AS to_status,
       NULL AS event, NULL AS attempt, NULL AS generation, NULL AS session, NULL AS actor, NULL AS reason,
       NULL AS created_at
WHERE false

-- name: view_audit_part
SELECT a.seq, a.task, a.tenant, f.code, t.code, e.name, a.attempt, a.generation,
       CASE WHEN a.session IS NOT NULL THEN lower(substr(hex(a.session), 1, 8) || '-' || substr(hex(a.session), 9, 4) || '-' || substr(hex(a.session), 13, 4) || '-' || substr(hex(a.session), 17, 4) || '-' || substr(hex(a.session), 21, 12)) END,
       coalesce(a.actor, ''), coalesce(a.reason, ''), strftime('%Y-%m-%dT%H:%M:%fZ', a.at / 1e6, 'unixepoch')
FROM stint_audit_{p} a JOIN stint_event e ON e.id = a.event LEFT JOIN stint_status f ON f.id = a.from_state
JOIN stint_status t ON t.id = a.to_state
