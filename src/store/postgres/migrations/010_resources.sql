-- Resources, who holds them, and tasks that go one after the other.
-- flags, continued: 2048 it holds resources (leases only), 4096 it has an order key.

-- A lane has a placement: what its tasks need, and where they may run, as JSON; '' for most.
ALTER TABLE $schema$.lane ADD placement text NOT NULL DEFAULT '';
ALTER TABLE $schema$.task_type ADD placement text NOT NULL DEFAULT '';

CREATE FUNCTION $schema$.lane_of_(queue_name text, type_name text, tenant_id bigint, prio int, is_suspect boolean, place text) RETURNS int LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE found int;
BEGIN
    SELECT min(l.id) INTO found FROM $schema$.lane l JOIN $schema$.queue q ON q.id = l.queue
    WHERE q.name = queue_name AND l.type = type_name AND l.tenant = tenant_id AND l.priority = prio AND l.suspect = is_suspect AND l.placement = place;
    IF found IS NULL THEN
        INSERT INTO $schema$.lane(queue, type, tenant, priority, suspect, placement)
        SELECT q.id, type_name, tenant_id, prio, is_suspect, place FROM $schema$.queue q WHERE q.name = queue_name RETURNING id INTO found;
    END IF;
    RETURN found;
END $$;
-- Of a task that says nothing of its own: as its type has it.
CREATE OR REPLACE FUNCTION $schema$.lane_of_(queue_name text, type_name text, tenant_id bigint, prio int, is_suspect boolean) RETURNS int LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT $schema$.lane_of_(queue_name, type_name, tenant_id, prio, is_suspect,
        coalesce((SELECT t.placement FROM $schema$.task_type t WHERE t.name = type_name), ''))
$$;

-- settings and state are JSON. pattern: whose settings it has; '' = its own. A claim that takes of a resource locks its row
-- and then counts what is held: so no two can take the same. Letting go needs no lock but on what was held.
-- matches: the LIKE pattern of the queues and types that it limits, if it is one of those.
CREATE TABLE $schema$.resource(
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    pattern text NOT NULL DEFAULT '',
    settings text NOT NULL,
    state text NOT NULL DEFAULT '',
    matches text
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE $schema$.slot(
    task bigint NOT NULL,
    resource int NOT NULL REFERENCES $schema$.resource ON DELETE CASCADE,
    units int NOT NULL,
    PRIMARY KEY (task, resource)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX slot_resource ON $schema$.slot(resource);
CREATE TABLE $schema$.queue_order(queue text PRIMARY KEY, settings text NOT NULL);

CREATE OR REPLACE VIEW $schema$.task_resource AS
SELECT r.id::smallint AS id, r.name, (r.settings::jsonb ->> 'capacity')::int AS max_concurrency FROM $schema$.resource r;
CREATE OR REPLACE VIEW $schema$.task_resource_dep AS
SELECT v.id AS task_id, r.id::smallint AS depends_on
FROM $schema$.live v JOIN $schema$.lane l ON l.id = v.lane AND l.placement <> ''
CROSS JOIN LATERAL jsonb_object_keys(coalesce(l.placement::jsonb -> 'needs', '{}')) n JOIN $schema$.resource r ON r.name = n;

-- Whose turn comes when, among the tasks of an order key. turn is NULL of one that is over. All but the first are parked:
-- in later, due at infinity; live knows when they are due.
CREATE SEQUENCE $schema$.order_seq;
CREATE TABLE $schema$.ordered(
    task bigint PRIMARY KEY,
    tenant bigint NOT NULL,
    key text NOT NULL,
    turn bigint,
    on_failed smallint NOT NULL,
    over_at timestamptz
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX ordered_turn ON $schema$.ordered(tenant, key, turn) WHERE turn IS NOT NULL;
CREATE INDEX ordered_over ON $schema$.ordered(over_at) WHERE over_at IS NOT NULL;

-- One at a time may look at or change the line of a key.
CREATE FUNCTION $schema$.order_lock_(tenants bigint[], keys text[]) RETURNS void LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(k.h) FROM (
        SELECT DISTINCT hashtextextended('$schema_name$ order ' || u.t || ' ' || u.k, 7006) AS h FROM unnest(tenants, keys) u(t, k) ORDER BY 1) k
$$;
-- Out of the way those of the tasks that are not the first of their lines; answers which.
CREATE FUNCTION $schema$.order_park_(which bigint[]) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
DECLARE t record; flag smallint;
BEGIN
    PERFORM $schema$.order_lock_(array_agg(o.tenant), array_agg(o.key)) FROM $schema$.ordered o WHERE o.task = ANY (which);
    FOR t IN SELECT o.task, o.tenant, o.key, o.turn, v.lane, v.pos FROM $schema$.ordered o JOIN $schema$.live v ON v.id = o.task
             WHERE o.task = ANY (which) AND o.turn IS NOT NULL ORDER BY o.task LOOP
        CONTINUE WHEN NOT EXISTS (SELECT FROM $schema$.ordered f WHERE f.tenant = t.tenant AND f.key = t.key AND f.turn < t.turn);
        DELETE FROM $schema$.ready r WHERE r.lane = t.lane AND r.pos = t.pos AND r.task = t.task RETURNING r.flags INTO flag;
        IF FOUND THEN
            INSERT INTO $schema$.later(due, task, lane, flags) VALUES ('infinity', t.task, t.lane, flag);
            RETURN NEXT t.task;
        ELSE
            UPDATE $schema$.later w SET due = 'infinity' WHERE w.task = t.task;
            IF FOUND THEN RETURN NEXT t.task; END IF;
        END IF;
    END LOOP;
END $$;
-- At the end of their lines; one that has kept its turn keeps it. Answers those that are parked.
CREATE FUNCTION $schema$.order_join_(tasks bigint[], tenants bigint[], keys text[], policies smallint[]) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM $schema$.order_lock_(tenants, keys);
    INSERT INTO $schema$.ordered(task, tenant, key, turn, on_failed)
    SELECT u.task, u.tenant, u.key, nextval('$schema$.order_seq'), u.policy
    FROM (SELECT * FROM unnest(tasks, tenants, keys, policies) WITH ORDINALITY x(task, tenant, key, policy, ord) ORDER BY ord) u
    ON CONFLICT (task) DO NOTHING;
    RETURN QUERY SELECT $schema$.order_park_(tasks);
END $$;
-- Finished ones that are tried again.
CREATE FUNCTION $schema$.order_rejoin_(tasks bigint[]) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM $schema$.order_lock_(array_agg(o.tenant), array_agg(o.key)) FROM $schema$.ordered o WHERE o.task = ANY (tasks);
    UPDATE $schema$.ordered o SET turn = coalesce(o.turn, nextval('$schema$.order_seq')), over_at = NULL WHERE o.task = ANY (tasks);
    RETURN QUERY SELECT $schema$.order_park_(tasks);
END $$;
-- Tasks are over: those that come after them may go. Answers where the next ones wait (lane, position, task); or, kind 1,
-- those that are to be ended with a dead one. `plainly`: whatever their policies say.
CREATE FUNCTION $schema$.order_next_(tasks bigint[], states smallint[], plainly boolean) RETURNS TABLE(kind int, task bigint, lane int, pos bigint, cause bigint)
    LANGUAGE plpgsql AS $$
DECLARE t record;
BEGIN
    PERFORM $schema$.order_lock_(array_agg(o.tenant), array_agg(o.key)) FROM $schema$.ordered o WHERE o.task = ANY (tasks);
    FOR t IN SELECT o.task, o.tenant, o.key, o.turn, o.on_failed, u.state FROM unnest(tasks, states) u(task, state) JOIN $schema$.ordered o ON o.task = u.task
             WHERE o.turn IS NOT NULL ORDER BY o.turn LOOP
        CONTINUE WHEN t.state = 7 AND t.on_failed = 0 AND NOT plainly;
        IF t.state = 7 AND t.on_failed = 2 AND NOT plainly THEN
            RETURN QUERY SELECT 1, o.task, 0, 0::bigint, t.task FROM $schema$.ordered o WHERE o.tenant = t.tenant AND o.key = t.key AND o.turn > t.turn ORDER BY o.turn;
        END IF;
        UPDATE $schema$.ordered o SET turn = NULL, over_at = $schema$.now_() WHERE o.task = t.task;
    END LOOP;
    RETURN QUERY
    WITH f AS MATERIALIZED (
        SELECT (SELECT o.task FROM $schema$.ordered o WHERE o.tenant = k.tenant AND o.key = k.key AND o.turn IS NOT NULL ORDER BY o.turn LIMIT 1) AS task
        FROM (SELECT DISTINCT o.tenant, o.key FROM $schema$.ordered o WHERE o.task = ANY (tasks)) k)
    UPDATE $schema$.later w SET due = v.due_at FROM f JOIN $schema$.live v ON v.id = f.task
    WHERE w.task = f.task AND w.due = 'infinity' RETURNING 0, w.task, w.lane, v.pos, 0::bigint;
END $$;

CREATE OR REPLACE FUNCTION $schema$.replace_waiting_(wanted $schema$.live, at timestamptz, longest interval, tenant_id bigint, who text) RETURNS boolean LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    old $schema$.live%ROWTYPE; was $schema$.past%ROWTYPE; due timestamptz; flag int := wanted.flags | 2; taken boolean := false;
BEGIN
    FOR look IN 1 .. 20 LOOP
        SELECT * INTO old FROM $schema$.live v WHERE v.id = wanted.id;
        DELETE FROM $schema$.ready r WHERE r.lane = old.lane AND r.pos = old.pos AND r.task = wanted.id;
        taken := FOUND;
        EXIT WHEN taken;
        DELETE FROM $schema$.later w WHERE w.task = wanted.id;
        taken := FOUND;
        EXIT WHEN taken;
        -- One that has just become due went from where the second look would have found it to where the first had looked.
        IF NOT EXISTS (SELECT FROM $schema$.live v JOIN $schema$.ready r ON r.lane = v.lane AND r.pos = v.pos WHERE v.id = wanted.id)
            AND NOT EXISTS (SELECT FROM $schema$.later w WHERE w.task = wanted.id) THEN
            RETURN false;
        END IF;
    END LOOP;
    IF NOT taken THEN RAISE EXCEPTION 'task % is being moved by others; try again', wanted.id USING ERRCODE = '40001'; END IF;
    IF (SELECT l.suspect FROM $schema$.live v JOIN $schema$.lane l ON l.id = v.lane WHERE v.id = wanted.id) THEN
        wanted.lane := (SELECT $schema$.lane_of_(q.name, l.type, l.tenant, l.priority, true, l.placement)
                        FROM $schema$.lane l JOIN $schema$.queue q ON q.id = l.queue WHERE l.id = wanted.lane);
    END IF;
    due := least(wanted.due_at, old.created_at + longest);
    flag := flag | (old.flags & 4096);
    SELECT * INTO was FROM $schema$.past p WHERE p.task = wanted.id;
    INSERT INTO $schema$.past(task, state, attempt, claim_no, generation, crash_count, updated_at) VALUES (wanted.id, 0, 0, 0, 1, 0, at)
    ON CONFLICT ON CONSTRAINT past_pkey DO UPDATE SET updated_at = excluded.updated_at;
    UPDATE $schema$.live v SET lane = wanted.lane, policy = wanted.policy, flags = flag, explicit = wanted.explicit, timeout_ms = wanted.timeout_ms,
        start_by = wanted.start_by, tags = wanted.tags, input = wanted.input, due_at = due
    WHERE v.id = wanted.id;
    IF due <= at THEN
        INSERT INTO $schema$.ready(lane, pos, task, flags) VALUES (wanted.lane, old.pos, wanted.id, flag | 1);
    ELSE
        INSERT INTO $schema$.later(due, task, lane, flags) VALUES (due, wanted.id, wanted.lane, flag | 1);
    END IF;
    PERFORM $schema$.make_leaf_('audit', $schema$.day_(at));
    INSERT INTO $schema$.audit(part, seq, at, tenant, event, from_state, to_state, attempt, generation, actor, reason, span, ids)
    VALUES ($schema$.day_(at), nextval('$schema$.audit_seq'), at, tenant_id, 17, coalesce(was.state, 0), coalesce(was.state, 0), coalesce(was.attempt, 0),
        coalesce(was.generation, 1), who, 'replaced by a new request', int8range(wanted.id, wanted.id, '[]'), ARRAY[wanted.id]);
    IF (old.flags & 4096) <> 0 THEN PERFORM $schema$.order_park_(ARRAY[wanted.id]); END IF;
    RETURN true;
END $$;

CREATE OR REPLACE VIEW $schema$.record_live_ AS
SELECT v.id, l.tenant, v.parent, l.type, q.name AS queue,
    (CASE WHEN o.task IS NOT NULL THEN o.state
          WHEN r.task IS NOT NULL OR w.task IS NOT NULL THEN coalesce(p.state, 0::smallint)
          ELSE 1::smallint END) AS state,
    l.priority, v.input, NULL::text AS output, p.error,
    coalesce(o.reason, '') AS reason, false AS warning, (v.flags & 32) = 0 AS type_known,
    coalesce(h.flags & 4, 0) <> 0 AS cancel_requested, l.suspect,
    coalesce(p.attempt, 0) + (h.task IS NOT NULL)::int AS attempt,
    coalesce(p.claim_no, 0) + (h.task IS NOT NULL)::int AS claim_no,
    coalesce(p.generation, 1) AS generation, coalesce(p.crash_count, 0) AS crash_count,
    v.tags, v.unique_key, v.idem_key, v.policy, v.timeout_ms,
    CASE WHEN g.task IS NOT NULL THEN json_build_object('step', g.step, 'done', g.done, 'total', g.total, 'message', g.message)::text END AS progress,
    h.session, coalesce(s.node, p.node) AS node, v.created_at,
    v.due_at, v.start_by, coalesce(h.started_at, p.claimed_at) AS claimed_at, NULL::timestamptz AS finished_at,
    coalesce(s.lease_until, o.expires_at) AS expires_at,
    greatest(v.created_at, p.updated_at, h.started_at) AS updated_at, v.lane,
    coalesce(y.pending, 0) AS waiting_for, v.flags::int AS flags, x.key AS order_key, x.on_failed, l.placement
FROM $schema$.live v
JOIN $schema$.lane l ON l.id = v.lane
JOIN $schema$.queue q ON q.id = l.queue
LEFT JOIN $schema$.ready r ON r.lane = v.lane AND r.pos = v.pos AND r.task = v.id
LEFT JOIN $schema$.later w ON w.task = v.id
LEFT JOIN $schema$.outside o ON o.task = v.id
LEFT JOIN $schema$.past p ON p.task = v.id
LEFT JOIN (SELECT u.task, u.secret, u.flags, e.session, e.started_at FROM $schema$.lease e
           CROSS JOIN LATERAL unnest(e.ids, e.secrets, e.flags) u(task, secret, flags)) h ON h.task = v.id
LEFT JOIN $schema$.session s ON s.id = h.session
LEFT JOIN $schema$.progress g ON g.task = v.id AND g.secret = h.secret
LEFT JOIN $schema$.wait y ON y.task = v.id AND y.open
LEFT JOIN $schema$.ordered x ON x.task = v.id AND (v.flags & 4096) <> 0;

CREATE OR REPLACE VIEW $schema$.record_history_ AS
SELECT v.id, l.tenant, v.parent, l.type, q.name AS queue, v.state, l.priority, v.input, v.output, v.error,
    coalesce(v.reason, '') AS reason, v.warning, (v.flags & 32) = 0 AS type_known, (v.flags & 4) <> 0 AS cancel_requested,
    false AS suspect, v.attempt, v.claim_no, v.generation, v.crash_count, v.tags, v.unique_key, v.idem_key, v.policy,
    v.timeout_ms, NULL::text AS progress, NULL::uuid AS session, v.node, v.created_at, v.due_at, v.start_by, v.claimed_at,
    v.finished_at, NULL::timestamptz AS expires_at, v.finished_at AS updated_at, v.lane, v.part, x.key AS order_key, x.on_failed, l.placement
FROM $schema$.history v
JOIN $schema$.lane l ON l.id = v.lane
JOIN $schema$.queue q ON q.id = l.queue
LEFT JOIN $schema$.ordered x ON x.task = v.id AND (v.flags & 4096) <> 0;
