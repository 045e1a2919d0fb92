-- Resources, who holds them, and tasks that go one after the other.

-- A lane has a placement: what its tasks need, and where they may run; '' for most.
PRAGMA defer_foreign_keys = ON;
CREATE TABLE stint_lane_before (
    id INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL,
    queue TEXT NOT NULL,
    type TEXT NOT NULL
) STRICT;
INSERT INTO stint_lane_before (id, tenant, queue, type) SELECT id, tenant, queue, type FROM stint_lane;
DROP TABLE stint_lane;
CREATE TABLE stint_lane (
    id INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL,
    queue TEXT NOT NULL,
    type TEXT NOT NULL,
    placement TEXT NOT NULL,
    UNIQUE (queue, type, tenant, placement)
) STRICT;
INSERT INTO stint_lane (id, tenant, queue, type, placement) SELECT id, tenant, queue, type, '' FROM stint_lane_before;
DROP TABLE stint_lane_before;
CREATE TABLE stint_lane_need (
    lane INTEGER NOT NULL REFERENCES stint_lane (id),
    resource TEXT NOT NULL,
    units INTEGER NOT NULL,
    PRIMARY KEY (lane, resource)
) STRICT, WITHOUT ROWID;
ALTER TABLE stint_type ADD COLUMN placement TEXT NOT NULL DEFAULT '';

-- settings and state are JSON. pattern: whose settings it has; '' = its own.
DROP VIEW task_resource_dep;
DROP VIEW task_resource;
DROP TABLE stint_resource_dep;
DROP TABLE stint_resource;
CREATE TABLE stint_resource (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    pattern TEXT NOT NULL,
    capacity INTEGER,
    settings TEXT NOT NULL,
    state TEXT NOT NULL
) STRICT;
CREATE TABLE stint_slot (
    task INTEGER NOT NULL,
    resource TEXT NOT NULL,
    units INTEGER NOT NULL,
    PRIMARY KEY (task, resource)
) STRICT, WITHOUT ROWID;
CREATE TABLE stint_queue_order (
    queue TEXT PRIMARY KEY,
    settings TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Whose turn comes when, among the tasks of an order key. turn is NULL of one that is over.
CREATE TABLE stint_ordered (
    task INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL,
    key TEXT NOT NULL,
    turn INTEGER,
    on_failed INTEGER NOT NULL,
    over_at INTEGER
) STRICT;
CREATE INDEX stint_ordered_turn ON stint_ordered (tenant, key, turn) WHERE turn IS NOT NULL;
CREATE INDEX stint_ordered_over ON stint_ordered (over_at) WHERE over_at IS NOT NULL;

CREATE VIEW task_resource AS SELECT id, name, capacity AS max_concurrency FROM stint_resource;
CREATE VIEW task_resource_dep AS
    SELECT t.id AS task_id, r.id AS depends_on
    FROM stint_task t JOIN stint_lane_need n ON n.lane = t.lane JOIN stint_resource r ON r.name = n.resource;
