-- Results of single objects, checkpoints, deletions in time.

-- One row per task that has any. Looked at in turn, and removed when the task's record is gone.
CREATE TABLE stint_result (
    task INTEGER PRIMARY KEY,
    total INTEGER NOT NULL,
    errors INTEGER NOT NULL,
    checkpoint TEXT,
    checkpoint_by INTEGER,
    checkpoint_at INTEGER,
    checked_at INTEGER NOT NULL
) STRICT;
CREATE INDEX stint_result_checked ON stint_result (checked_at);

CREATE TABLE stint_item (
    task INTEGER NOT NULL,
    key TEXT NOT NULL,
    action TEXT NOT NULL,
    before TEXT,
    after TEXT,
    error TEXT,
    claim_no INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (task, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX stint_item_errors ON stint_item (task, key) WHERE error IS NOT NULL;

-- state: 0 marked, 1 taken by a node, 2 begun. due_at: when it may be taken (again), or forgotten.
CREATE TABLE stint_deletion (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant INTEGER NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    initiator TEXT NOT NULL,
    steps TEXT NOT NULL,
    state INTEGER NOT NULL,
    marked_at INTEGER NOT NULL,
    delete_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    task INTEGER,
    UNIQUE (tenant, kind, key)
) STRICT;
CREATE INDEX stint_deletion_due ON stint_deletion (tenant, kind, due_at) WHERE state < 2;
CREATE INDEX stint_deletion_over ON stint_deletion (due_at) WHERE state = 2;

CREATE TABLE stint_deletion_pace (
    tenant INTEGER NOT NULL,
    kind TEXT NOT NULL,
    cap INTEGER NOT NULL,
    every_ms INTEGER NOT NULL,
    next_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, kind)
) STRICT, WITHOUT ROWID;
