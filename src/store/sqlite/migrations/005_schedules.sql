-- Schedules, the marks of the instants they decided, calendars and visits.

-- spec is what was asked, as JSON; what the store itself looks at has columns of its own.
CREATE TABLE stint_schedule (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant INTEGER NOT NULL,
    name TEXT NOT NULL,
    spec TEXT NOT NULL,
    visits INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    paused INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    considered_at INTEGER NOT NULL,
    next_at INTEGER,
    queued_at INTEGER,
    last_instant INTEGER,
    last_task INTEGER,
    running TEXT NOT NULL,
    changed_by TEXT NOT NULL,
    changed_at INTEGER NOT NULL,
    UNIQUE (tenant, name)
) STRICT;
CREATE INDEX stint_schedule_due ON stint_schedule (next_at) WHERE paused = 0 AND next_at IS NOT NULL;
CREATE INDEX stint_schedule_visits ON stint_schedule (id) WHERE paused = 0 AND visits = 1;

-- An instant that was decided: at most one row, at most one task. entity is '' unless it is a visit.
CREATE TABLE stint_schedule_run (
    schedule INTEGER NOT NULL,
    instant INTEGER NOT NULL,
    entity TEXT NOT NULL,
    cause INTEGER NOT NULL,
    task INTEGER,
    skipped TEXT NOT NULL,
    decided_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (schedule, instant, entity)
) STRICT, WITHOUT ROWID;
CREATE INDEX stint_schedule_run_expires ON stint_schedule_run (expires_at);

CREATE TABLE stint_calendar (
    tenant INTEGER NOT NULL,
    name TEXT NOT NULL,
    dates TEXT NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE stint_visit (
    schedule INTEGER NOT NULL,
    entity TEXT NOT NULL,
    every_ms INTEGER,
    next_at INTEGER NOT NULL,
    last_at INTEGER,
    PRIMARY KEY (schedule, entity)
) STRICT, WITHOUT ROWID;
CREATE INDEX stint_visit_due ON stint_visit (schedule, next_at);
