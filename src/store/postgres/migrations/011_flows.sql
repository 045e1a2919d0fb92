-- Workflows that are functions. awaits: the signal that one sleeps for; came: and it has come. Whoever signals a flow, or
-- lets it sleep, holds its row until the end. look_at: when to see whether the task is still kept.
CREATE TABLE $schema$.flow(
    task bigint PRIMARY KEY,
    tenant bigint NOT NULL,
    steps int NOT NULL,
    bytes bigint NOT NULL,
    signals int NOT NULL,
    waiting int NOT NULL,
    awaits text,
    came boolean NOT NULL,
    started_at timestamptz NOT NULL,
    look_at timestamptz NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX flow_look ON $schema$.flow(look_at);

CREATE TABLE $schema$.flow_step(
    task bigint NOT NULL,
    no int NOT NULL,
    name text NOT NULL,
    occurrence int NOT NULL,
    kind smallint NOT NULL,
    state smallint NOT NULL,              -- 0 open, 1 done, 2 failed, 3 timed out
    about text,
    hash text,
    result text,
    child bigint,
    due_at timestamptz,
    late boolean NOT NULL,
    at timestamptz NOT NULL,
    ended_at timestamptz,
    PRIMARY KEY (task, no)
);
CREATE UNIQUE INDEX flow_step_name ON $schema$.flow_step(task, name, occurrence);

CREATE TABLE $schema$.flow_signal(
    task bigint NOT NULL,
    no int NOT NULL,
    name text NOT NULL,
    id text,
    payload text NOT NULL,
    at timestamptz NOT NULL,
    step int,
    PRIMARY KEY (task, no)
);
CREATE UNIQUE INDEX flow_signal_id ON $schema$.flow_signal(task, id) WHERE id IS NOT NULL;
