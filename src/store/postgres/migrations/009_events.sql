-- What was published. An event with an id is known by it as long as the row is there. due_at: while it is pending,
-- when it is handed out (again).
CREATE SEQUENCE $schema$.published_no;
CREATE TABLE $schema$.published(
    no bigint PRIMARY KEY DEFAULT nextval('$schema$.published_no'),
    tenant bigint NOT NULL,
    source text NOT NULL,
    id text,
    type text NOT NULL,
    data text NOT NULL,
    time timestamptz NOT NULL,
    cause bigint,
    depth int NOT NULL,
    state smallint NOT NULL,              -- 0 pending, 1 done, 2 unwanted, 3 refused
    reason text,
    tries int NOT NULL,
    published_at timestamptz NOT NULL,
    due_at timestamptz NOT NULL,
    processed_at timestamptz
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
CREATE UNIQUE INDEX published_id ON $schema$.published(tenant, source, id) WHERE id IS NOT NULL;
CREATE INDEX published_due ON $schema$.published(due_at, no) WHERE state = 0;
CREATE INDEX published_over ON $schema$.published(processed_at) WHERE processed_at IS NOT NULL;

-- That this event has fired this trigger, or reached this join: once. depth is the event's.
CREATE TABLE $schema$.firing(
    event bigint NOT NULL,
    workflow text NOT NULL,
    name text NOT NULL,
    tenant bigint NOT NULL,
    version int NOT NULL,
    kind smallint NOT NULL,
    task bigint,
    depth int NOT NULL,
    message text,
    at timestamptz NOT NULL,
    PRIMARY KEY (event, workflow, name)
);
CREATE INDEX firing_task ON $schema$.firing(task) WHERE task IS NOT NULL;
CREATE INDEX firing_workflow ON $schema$.firing(tenant, workflow, event);

CREATE TABLE $schema$.workflow(
    tenant bigint NOT NULL,
    name text NOT NULL,
    version int NOT NULL,
    definition text NOT NULL,
    updated_at timestamptz NOT NULL,
    updated_by text NOT NULL,
    PRIMARY KEY (tenant, name)
);
-- Whoever changes a definition holds this row until the end.
CREATE TABLE $schema$.workflow_revision(one boolean PRIMARY KEY DEFAULT true CHECK (one), revision bigint NOT NULL);
INSERT INTO $schema$.workflow_revision(revision) VALUES (1);

-- Task types that joins wait for: only their completions are events.
CREATE TABLE $schema$.workflow_member(
    tenant bigint NOT NULL,
    type text NOT NULL,
    workflow text NOT NULL,
    PRIMARY KEY (tenant, type, workflow)
);

-- One round of a join for one key; mask has a bit for each member that is complete.
CREATE TABLE $schema$.join_round(
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant bigint NOT NULL,
    workflow text NOT NULL,
    name text NOT NULL,
    key text NOT NULL,
    generation int NOT NULL,
    mask bigint NOT NULL,
    state smallint NOT NULL,              -- 0 open, 1 fired, 2 expired, 3 refused
    task bigint,
    message text,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    ended_at timestamptz,
    UNIQUE (tenant, workflow, name, key, generation)
) WITH (fillfactor = 80);
CREATE INDEX join_round_open ON $schema$.join_round(expires_at) WHERE state = 0;
CREATE INDEX join_round_over ON $schema$.join_round(ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE $schema$.join_part(
    round bigint NOT NULL,
    member smallint NOT NULL,
    type text NOT NULL,
    task bigint NOT NULL,
    output text NOT NULL,
    completed_at timestamptz NOT NULL,
    PRIMARY KEY (round, type)
);
-- Keys that a join has fired once, as long as the join is there; their rounds are forgotten sooner.
CREATE TABLE $schema$.join_once(
    tenant bigint NOT NULL,
    workflow text NOT NULL,
    name text NOT NULL,
    key text NOT NULL,
    generation int NOT NULL,
    PRIMARY KEY (tenant, workflow, name, key)
);

CREATE OR REPLACE VIEW $schema$.task_joins AS
SELECT r.key::varchar(256) AS join_key, (r.workflow || '/' || r.name)::varchar(128) AS workflow_id, p.type::varchar(128) AS task_type,
    p.task AS task_id, p.completed_at
FROM $schema$.join_round r JOIN $schema$.join_part p ON p.round = r.id WHERE r.state = 0;

-- How deep an event of this cause is: one more than the event that led to the cause, or to what the cause is part of,
-- finished or not. Below more than 1000 tasks: deeper than any may be.
CREATE FUNCTION $schema$.event_depth_(cause bigint) RETURNS int LANGUAGE plpgsql STABLE AS $$
DECLARE
    up bigint := cause; above bigint; here int; depth int := 0; period int;
BEGIN
    FOR step IN 1 .. 1000 LOOP
        SELECT max(f.depth) + 1 INTO here FROM $schema$.firing f WHERE f.task = up;
        depth := greatest(depth, here);
        SELECT l.parent INTO above FROM $schema$.live l WHERE l.id = up;
        IF NOT FOUND THEN
            period := $schema$.period_(up);
            -- Planned each time, for the few tables that it may be in: a plan for all would lock them all.
            EXECUTE 'SELECT h.parent FROM $schema$.history h WHERE h.id = $1 AND h.part BETWEEN $2 AND $3'
                INTO above USING up, (period - 1) * 16, (period + 1) * 16 + 15;
        END IF;
        IF above IS NULL THEN RETURN depth; END IF;
        up := above;
    END LOOP;
    RETURN 17;
END $$;
