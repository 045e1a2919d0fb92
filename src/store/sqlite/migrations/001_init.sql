-- The first schema. Instants are microseconds since 1970 UTC, durations milliseconds, ids of sessions
-- and lease tokens 16 random bytes. Tables are ours (stint_…); the views are the read contract.

CREATE TABLE stint_counter (
    name TEXT PRIMARY KEY,
    next INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO stint_counter (name, next) VALUES ('task', 1), ('seq', 1);

-- The distinct heads of the claim: one per (tenant, queue, type) ever used.
CREATE TABLE stint_lane (
    id INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL,
    queue TEXT NOT NULL,
    type TEXT NOT NULL,
    UNIQUE (queue, type, tenant)
) STRICT;

CREATE TABLE stint_queue (
    name TEXT PRIMARY KEY,
    paused INTEGER NOT NULL,
    cap INTEGER,
    keep_complete_ms INTEGER,
    keep_dead_ms INTEGER,
    keep_cancelled_ms INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE stint_type (
    name TEXT PRIMARY KEY,
    queue TEXT NOT NULL,
    priority INTEGER NOT NULL,
    retry TEXT NOT NULL,
    timeout_ms INTEGER NOT NULL,
    isolated INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE stint_node (
    id INTEGER PRIMARY KEY,
    hostname TEXT NOT NULL COLLATE NOCASE UNIQUE,
    last_seen INTEGER NOT NULL
) STRICT;

-- opener_*: which process opened it through which handle, so that a session of a process that is gone
-- is known to be dead without waiting for its lease.
CREATE TABLE stint_session (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE,
    node INTEGER NOT NULL REFERENCES stint_node (id),
    hostname TEXT NOT NULL,
    pid INTEGER NOT NULL,
    state INTEGER NOT NULL,
    worker_state TEXT NOT NULL,
    slots INTEGER NOT NULL,
    running INTEGER NOT NULL,
    queues TEXT NOT NULL,
    types TEXT NOT NULL,
    version TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    renewed_at INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    opener_handle BLOB NOT NULL,
    opener_process TEXT NOT NULL
) STRICT;
CREATE INDEX stint_session_live ON stint_session (lease_until) WHERE state < 2;
CREATE INDEX stint_session_over ON stint_session (renewed_at) WHERE state >= 2;

-- Tasks that are not terminal. `wait` says where a claim finds it: 0 nowhere (held, outside, blocked),
-- 1 ready, 2 due later, 3 and 5 the same of suspects, 4 its start-by deadline has passed.
-- urgency = 255 - priority, so that every part of the claim's key ascends.
CREATE TABLE stint_task (
    id INTEGER PRIMARY KEY,
    lane INTEGER NOT NULL REFERENCES stint_lane (id),
    state INTEGER NOT NULL,
    wait INTEGER NOT NULL,
    urgency INTEGER NOT NULL,
    position INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    start_by INTEGER,
    attempt INTEGER NOT NULL,
    claim_no INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    crash_from INTEGER,
    flags INTEGER NOT NULL,
    timeout_ms INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    claimed_at INTEGER,
    session INTEGER,
    deadline_at INTEGER,
    node INTEGER,
    parent INTEGER,
    token BLOB,
    retry TEXT,
    tags TEXT,
    unique_key TEXT,
    idem_key TEXT,
    debounce_key TEXT,
    progress TEXT,
    error TEXT,
    reason TEXT,
    input TEXT NOT NULL
) STRICT;
CREATE INDEX stint_task_ready ON stint_task (lane, urgency, position) WHERE wait = 1;
CREATE INDEX stint_task_suspect ON stint_task (lane, urgency, position) WHERE wait = 3;
CREATE INDEX stint_task_later ON stint_task (lane, due_at) WHERE wait = 2;
CREATE INDEX stint_task_later_suspect ON stint_task (lane, due_at) WHERE wait = 5;
CREATE INDEX stint_task_held ON stint_task (session) WHERE session IS NOT NULL;
CREATE INDEX stint_task_deadline ON stint_task (state, deadline_at) WHERE deadline_at IS NOT NULL;
CREATE INDEX stint_task_start_by ON stint_task (start_by) WHERE start_by IS NOT NULL AND wait > 0;
CREATE INDEX stint_task_parent ON stint_task (parent) WHERE parent IS NOT NULL;
CREATE INDEX stint_task_unknown ON stint_task (lane) WHERE flags & 1 AND wait > 0;

CREATE TABLE stint_idempotency (
    tenant INTEGER NOT NULL,
    key TEXT NOT NULL,
    task INTEGER NOT NULL,
    hash TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX stint_idempotency_expires ON stint_idempotency (expires_at);

CREATE TABLE stint_unique (
    tenant INTEGER NOT NULL,
    type TEXT NOT NULL,
    key TEXT NOT NULL,
    task INTEGER NOT NULL,
    PRIMARY KEY (tenant, type, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE stint_debounce (
    tenant INTEGER NOT NULL,
    type TEXT NOT NULL,
    key TEXT NOT NULL,
    task INTEGER NOT NULL,
    PRIMARY KEY (tenant, type, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE stint_throttle (
    tenant INTEGER NOT NULL,
    type TEXT NOT NULL,
    key TEXT NOT NULL,
    task INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, type, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX stint_throttle_expires ON stint_throttle (expires_at);

-- Which period tables there are: stint_<kind>_<id>. Dropped as a whole when ends_at + keep_ms is past.
CREATE TABLE stint_period (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    keep_ms INTEGER NOT NULL,
    starts_at INTEGER NOT NULL,
    ends_at INTEGER NOT NULL,
    UNIQUE (kind, keep_ms, starts_at)
) STRICT;

-- How many tasks there are per lane and state: period 0 = the live ones. Kept by the same
-- transactions, so that counting never scans.
CREATE TABLE stint_tally (
    period INTEGER NOT NULL,
    lane INTEGER NOT NULL,
    state INTEGER NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (period, lane, state)
) STRICT, WITHOUT ROWID;

CREATE TABLE stint_status (
    id INTEGER PRIMARY KEY,
    code TEXT NOT NULL UNIQUE
) STRICT;
INSERT INTO stint_status (id, code) VALUES
    (0, 'OPEN'), (1, 'IN_PROGRESS'), (2, 'BLOCKED'), (3, 'BACKGROUND'),
    (4, 'COMPLETE'), (5, 'ERROR'), (6, 'CANCELLED'), (7, 'DEAD');

CREATE TABLE stint_event (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;
INSERT INTO stint_event (id, name) VALUES
    (0, 'submit'), (1, 'claim'), (2, 'retry_due'), (3, 'complete'), (4, 'block'), (5, 'unblock'), (6, 'background'),
    (7, 'fail_retryable'), (8, 'fail_final'), (9, 'snooze'), (10, 'release'), (11, 'reclaim'), (12, 'quarantine'),
    (13, 'background_timeout'), (14, 'cancel'), (15, 'expire'), (16, 'operator_retry'), (17, 'edit');

CREATE TABLE stint_task_dep (
    task INTEGER NOT NULL,
    depends_on INTEGER NOT NULL,
    PRIMARY KEY (task, depends_on)
) STRICT, WITHOUT ROWID;
CREATE INDEX stint_task_dep_on ON stint_task_dep (depends_on);

CREATE TABLE stint_resource (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL COLLATE NOCASE UNIQUE,
    max_concurrency INTEGER
) STRICT;

CREATE TABLE stint_resource_dep (
    task INTEGER NOT NULL,
    depends_on INTEGER NOT NULL REFERENCES stint_resource (id),
    PRIMARY KEY (task, depends_on)
) STRICT, WITHOUT ROWID;
CREATE INDEX stint_resource_dep_on ON stint_resource_dep (depends_on);

CREATE TABLE stint_join (
    join_key TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    task_type TEXT NOT NULL,
    task INTEGER,
    completed_at INTEGER,
    PRIMARY KEY (join_key, workflow_id, task_type)
) STRICT, WITHOUT ROWID;

-- The read contract. task and audit_logs span the period tables and are made again with each of them.
CREATE VIEW task_status AS SELECT id, code FROM stint_status;
CREATE VIEW task_task_dep AS SELECT task AS task_id, depends_on FROM stint_task_dep;
CREATE VIEW task_resource AS SELECT id, name, max_concurrency FROM stint_resource;
CREATE VIEW task_resource_dep AS SELECT task AS task_id, depends_on FROM stint_resource_dep;
CREATE VIEW node AS
    SELECT id, hostname, strftime('%Y-%m-%dT%H:%M:%fZ', last_seen / 1e6, 'unixepoch') AS last_seen
    FROM stint_node;
CREATE VIEW task_joins AS
    SELECT join_key, workflow_id, task_type, task AS task_id,
           strftime('%Y-%m-%dT%H:%M:%fZ', completed_at / 1e6, 'unixepoch') AS completed_at
    FROM stint_join;
