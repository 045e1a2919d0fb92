-- Results of single objects, checkpoints, deletions in time.

-- One row per task that has any. Looked at in turn, and removed when the task's record is gone.
CREATE TABLE $schema$.task_result(
    task bigint PRIMARY KEY,
    total bigint NOT NULL,
    errors bigint NOT NULL,
    checkpoint text,
    checkpoint_by int,
    checkpoint_at timestamptz,
    checked_at timestamptz NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX task_result_checked ON $schema$.task_result(checked_at);

CREATE TABLE $schema$.item(
    task bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    action text NOT NULL,
    before text,
    after text,
    error text,
    claim_no int NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (task, key)
);
CREATE INDEX item_errors ON $schema$.item(task, key) WHERE error IS NOT NULL;

-- state: 0 marked, 1 taken by a node, 2 begun. due_at: when it may be taken (again), or forgotten.
CREATE TABLE $schema$.deletion(
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    initiator text NOT NULL,
    steps text NOT NULL,
    state smallint NOT NULL,
    marked_at timestamptz NOT NULL,
    delete_at timestamptz NOT NULL,
    due_at timestamptz NOT NULL,
    task bigint,
    UNIQUE (tenant, kind, key)
) WITH (fillfactor = 80);
CREATE INDEX deletion_due ON $schema$.deletion(tenant, kind, due_at, id) WHERE state < 2;
CREATE INDEX deletion_over ON $schema$.deletion(due_at) WHERE state = 2;

CREATE TABLE $schema$.deletion_pace(
    tenant bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    cap int NOT NULL,
    every_ms bigint NOT NULL,
    next_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, kind)
);
