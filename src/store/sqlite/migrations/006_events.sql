-- What was published. An event with an id is known by it as long as the row is there. due_at: while it is pending,
-- when it is handed out (again).
CREATE TABLE stint_published (
    no INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant INTEGER NOT NULL,
    source TEXT NOT NULL,
    id TEXT,
    type TEXT NOT NULL,
    data TEXT NOT NULL,
    time INTEGER NOT NULL,
    cause INTEGER,
    depth INTEGER NOT NULL,
    state INTEGER NOT NULL,
    reason TEXT,
    tries INTEGER NOT NULL,
    published_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    processed_at INTEGER
) STRICT;
CREATE UNIQUE INDEX stint_published_id ON stint_published (tenant, source, id) WHERE id IS NOT NULL;
CREATE INDEX stint_published_due ON stint_published (due_at, no) WHERE state = 0;
CREATE INDEX stint_published_over ON stint_published (processed_at) WHERE processed_at IS NOT NULL;

-- That this event has fired this trigger, or reached this join: once. depth is the event's.
CREATE TABLE stint_firing (
    event INTEGER NOT NULL,
    workflow TEXT NOT NULL,
    name TEXT NOT NULL,
    tenant INTEGER NOT NULL,
    version INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    task INTEGER,
    depth INTEGER NOT NULL,
    message TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (event, workflow, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX stint_firing_task ON stint_firing (task) WHERE task IS NOT NULL;
CREATE INDEX stint_firing_workflow ON stint_firing (tenant, workflow, event);

CREATE TABLE stint_workflow (
    tenant INTEGER NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    definition TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    updated_by TEXT NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;
INSERT INTO stint_counter (name, next) VALUES ('workflow', 1);

-- Task types that joins wait for: only their completions are events.
CREATE TABLE stint_workflow_member (
    tenant INTEGER NOT NULL,
    workflow TEXT NOT NULL,
    type TEXT NOT NULL,
    PRIMARY KEY (tenant, workflow, type)
) STRICT, WITHOUT ROWID;

-- One round of a join for one key; mask has a bit for each member that is complete.
CREATE TABLE stint_join_round (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant INTEGER NOT NULL,
    workflow TEXT NOT NULL,
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    generation INTEGER NOT NULL,
    mask INTEGER NOT NULL,
    state INTEGER NOT NULL,
    task INTEGER,
    message TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    ended_at INTEGER,
    UNIQUE (tenant, workflow, name, key, generation)
) STRICT;
CREATE INDEX stint_join_round_open ON stint_join_round (expires_at) WHERE state = 0;
CREATE INDEX stint_join_round_over ON stint_join_round (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE stint_join_part (
    round INTEGER NOT NULL,
    member INTEGER NOT NULL,
    type TEXT NOT NULL,
    task INTEGER NOT NULL,
    output TEXT NOT NULL,
    completed_at INTEGER NOT NULL,
    PRIMARY KEY (round, type)
) STRICT, WITHOUT ROWID;

-- Keys that a join has fired once, as long as the join is there; their rounds are forgotten sooner.
CREATE TABLE stint_join_once (
    tenant INTEGER NOT NULL,
    workflow TEXT NOT NULL,
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    generation INTEGER NOT NULL,
    PRIMARY KEY (tenant, workflow, name, key)
) STRICT, WITHOUT ROWID;

DROP VIEW task_joins;
DROP TABLE stint_join;
CREATE VIEW task_joins AS
    SELECT r.key AS join_key, r.workflow || '/' || r.name AS workflow_id, p.type AS task_type, p.task AS task_id,
           strftime('%Y-%m-%dT%H:%M:%fZ', p.completed_at / 1e6, 'unixepoch') AS completed_at
    FROM stint_join_round r JOIN stint_join_part p ON p.round = r.id WHERE r.state = 0;
