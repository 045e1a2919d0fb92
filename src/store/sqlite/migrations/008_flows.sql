-- Workflows that are functions. awaits: the signal that one sleeps for; came: and it has come. look_at: when to see
-- whether the task is still kept.
CREATE TABLE stint_flow (
    task INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL,
    steps INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    signals INTEGER NOT NULL,
    waiting INTEGER NOT NULL,
    awaits TEXT,
    came INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    look_at INTEGER NOT NULL
) STRICT;
CREATE INDEX stint_flow_look ON stint_flow (look_at);

CREATE TABLE stint_flow_step (
    task INTEGER NOT NULL,
    no INTEGER NOT NULL,
    name TEXT NOT NULL,
    occurrence INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    state INTEGER NOT NULL,
    about TEXT,
    hash TEXT,
    result TEXT,
    child INTEGER,
    due_at INTEGER,
    late INTEGER NOT NULL,
    at INTEGER NOT NULL,
    ended_at INTEGER,
    PRIMARY KEY (task, no)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX stint_flow_step_name ON stint_flow_step (task, name, occurrence);

CREATE TABLE stint_flow_signal (
    task INTEGER NOT NULL,
    no INTEGER NOT NULL,
    name TEXT NOT NULL,
    id TEXT,
    payload TEXT NOT NULL,
    at INTEGER NOT NULL,
    step INTEGER,
    PRIMARY KEY (task, no)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX stint_flow_signal_id ON stint_flow_signal (task, id) WHERE id IS NOT NULL;
CREATE INDEX stint_flow_signal_next ON stint_flow_signal (task, name, no) WHERE step IS NULL;
