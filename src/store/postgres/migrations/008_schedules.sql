-- Schedules, the marks of the instants they decided, calendars and visits.

-- spec is what was asked, as JSON; what the store itself looks at has columns of its own. Who changes a schedule, its
-- runs or its visits holds its row: so one that lost a race sees what the winner did.
CREATE TABLE $schema$.schedule(
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    spec text NOT NULL,
    visits boolean NOT NULL,
    revision int NOT NULL,
    turn bigint NOT NULL,
    paused boolean NOT NULL,
    created_at timestamptz NOT NULL,
    considered_at timestamptz NOT NULL,
    next_at timestamptz,
    queued_at timestamptz,
    last_instant timestamptz,
    last_task bigint,
    running text NOT NULL,
    changed_by text NOT NULL,
    changed_at timestamptz NOT NULL,
    UNIQUE (tenant, name)
) WITH (fillfactor = 70);
CREATE INDEX schedule_due ON $schema$.schedule(next_at) WHERE NOT paused AND next_at IS NOT NULL;
CREATE INDEX schedule_visits ON $schema$.schedule(id) WHERE NOT paused AND visits;

-- An instant that was decided: at most one row, at most one task. entity is '' unless it is a visit.
CREATE TABLE $schema$.schedule_run(
    schedule bigint NOT NULL,
    instant timestamptz NOT NULL,
    entity text COLLATE "C" NOT NULL,
    cause smallint NOT NULL,              -- 0 timed, 1 manual, 2 backfill
    task bigint,
    skipped text NOT NULL,
    decided_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (schedule, instant, entity)
);
CREATE INDEX schedule_run_expires ON $schema$.schedule_run(expires_at);

CREATE TABLE $schema$.calendar(
    tenant bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    dates text NOT NULL,
    PRIMARY KEY (tenant, name)
);

CREATE TABLE $schema$.visit(
    schedule bigint NOT NULL,
    entity text COLLATE "C" NOT NULL,
    every_ms bigint,
    next_at timestamptz NOT NULL,
    last_at timestamptz,
    PRIMARY KEY (schedule, entity)
) WITH (fillfactor = 70);
CREATE INDEX visit_due ON $schema$.visit(schedule, next_at);
