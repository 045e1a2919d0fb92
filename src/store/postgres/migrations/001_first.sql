-- The first schema. docs/decisions/0002-postgres-hot-path.md says why it looks like this: narrow ready rows in
-- lanes, one lease row per claimed batch, one audit row per batch, finished tasks moved out of the way.
-- $schema$. is replaced by the name of the schema.

-- Every statement reads the time here, so that a test database can have its own.
CREATE FUNCTION $schema$.now_() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()';

-- ---- names and settings, small and slow-changing -------------------------------------------------

CREATE TABLE $schema$.task_status(id smallint PRIMARY KEY, code text NOT NULL UNIQUE);
INSERT INTO $schema$.task_status VALUES
    (0, 'OPEN'), (1, 'IN_PROGRESS'), (2, 'BLOCKED'), (3, 'BACKGROUND'),
    (4, 'COMPLETE'), (5, 'ERROR'), (6, 'CANCELLED'), (7, 'DEAD');
CREATE TABLE $schema$.event_name(id smallint PRIMARY KEY, name text NOT NULL UNIQUE);
INSERT INTO $schema$.event_name VALUES
    (0, 'submit'), (1, 'claim'), (2, 'retry_due'), (3, 'complete'), (4, 'block'), (5, 'unblock'), (6, 'background'),
    (7, 'fail_retryable'), (8, 'fail_final'), (9, 'snooze'), (10, 'release'), (11, 'reclaim'), (12, 'quarantine'),
    (13, 'background_timeout'), (14, 'cancel'), (15, 'expire'), (16, 'operator_retry'), (17, 'edit');

-- How long finished tasks are kept; history tables are made per class and period. Class 0 is the default. A class
-- that no queue and no history table has any more is given to another retention, see retire_classes_.
CREATE TABLE $schema$.retention(
    class smallint PRIMARY KEY CONSTRAINT at_most_16_different_retentions CHECK (class BETWEEN 0 AND 15),
    keep_ms bigint NOT NULL UNIQUE,
    unused_since timestamptz
);
INSERT INTO $schema$.retention(class, keep_ms) VALUES (0, 90::bigint * 24 * 3600 * 1000);

CREATE TABLE $schema$.queue(
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    paused boolean NOT NULL DEFAULT false,
    cap bigint,
    keep_complete_ms bigint, keep_dead_ms bigint, keep_cancelled_ms bigint,
    class_complete smallint NOT NULL DEFAULT 0, class_dead smallint NOT NULL DEFAULT 0,
    class_cancelled smallint NOT NULL DEFAULT 0
);
INSERT INTO $schema$.queue(name) VALUES ('default');

CREATE TABLE $schema$.task_type(
    name text PRIMARY KEY,
    queue text NOT NULL,
    priority smallint NOT NULL,
    retry text NOT NULL,
    timeout_ms bigint NOT NULL,
    isolated boolean NOT NULL,
    revision int NOT NULL,
    updated_at timestamptz NOT NULL
);

-- A lane is one distinct head: all that decides whether and when a claimer may take a task. Inserted on first
-- use, never updated, so nodes may remember them for ever. Not unique: whoever submits inside a long transaction
-- would keep everybody waiting who needs the same lane for the first time. Two equal lanes are claimed from like one.
CREATE TABLE $schema$.lane(
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue int NOT NULL REFERENCES $schema$.queue,
    type text NOT NULL,
    tenant bigint NOT NULL,
    priority smallint NOT NULL,
    suspect boolean NOT NULL
);
CREATE INDEX lane_head ON $schema$.lane(queue, type, tenant, priority, suspect);

-- Retry policies. Not unique either.
CREATE TABLE $schema$.policy(id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, retry text NOT NULL);
CREATE INDEX policy_retry ON $schema$.policy(md5(retry));

-- The number of a lane or a policy, made now or before. The queue is there.
CREATE FUNCTION $schema$.lane_of_(queue_name text, type_name text, tenant_id bigint, prio int, is_suspect boolean) RETURNS int LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE found int;
BEGIN
    SELECT min(l.id) INTO found FROM $schema$.lane l JOIN $schema$.queue q ON q.id = l.queue
    WHERE q.name = queue_name AND l.type = type_name AND l.tenant = tenant_id AND l.priority = prio AND l.suspect = is_suspect;
    IF found IS NULL THEN
        INSERT INTO $schema$.lane(queue, type, tenant, priority, suspect)
        SELECT q.id, type_name, tenant_id, prio, is_suspect FROM $schema$.queue q WHERE q.name = queue_name RETURNING id INTO found;
    END IF;
    RETURN found;
END $$;
CREATE FUNCTION $schema$.policy_of_(policy_text text) RETURNS int LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE found int;
BEGIN
    SELECT min(p.id) INTO found FROM $schema$.policy p WHERE md5(p.retry) = md5(policy_text) AND p.retry = policy_text;
    IF found IS NULL THEN INSERT INTO $schema$.policy(retry) VALUES (policy_text) RETURNING id INTO found; END IF;
    RETURN found;
END $$;

-- ---- who ------------------------------------------------------------------------------------------

CREATE TABLE $schema$.node_label(
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hostname text NOT NULL,
    last_seen timestamptz NOT NULL
);
CREATE UNIQUE INDEX node_label_hostname ON $schema$.node_label(lower(hostname));

-- One row per worker process. A claim locks it FOR KEY SHARE, a renewal updates columns outside the key, an
-- expiry locks it FOR UPDATE: claims and renewals do not wait for each other, an expiry waits for claims.
CREATE TABLE $schema$.session(
    id uuid PRIMARY KEY,
    node bigint NOT NULL,
    pid bigint NOT NULL,
    state smallint NOT NULL,              -- 0 live, 1 draining, 2 closed, 3 expired
    worker_state text NOT NULL DEFAULT '',
    slots int NOT NULL,
    running int NOT NULL DEFAULT 0,
    queues text[] NOT NULL,
    types text[] NOT NULL,
    version text NOT NULL,
    started_at timestamptz NOT NULL,
    renewed_at timestamptz NOT NULL,
    lease_until timestamptz NOT NULL
) WITH (fillfactor = 50);

-- ---- live tasks -----------------------------------------------------------------------------------

-- Ids are given out in blocks of 64.
CREATE SEQUENCE $schema$.task_id_seq INCREMENT 64 MINVALUE 1 START 1;
-- A task's place in its line, drawn at submit and kept for life. CACHE 1: in the order of time.
CREATE SEQUENCE $schema$.pos_seq;

-- Ids by the day they were first given out: names the history table of a task from its id alone.
CREATE TABLE $schema$.period(no int PRIMARY KEY, first_id bigint NOT NULL UNIQUE, started_at timestamptz NOT NULL);

-- What was asked. Exactly one of: in ready, in later, in outside, in the ids of a lease.
CREATE TABLE $schema$.live(
    id bigint PRIMARY KEY,
    pos bigint NOT NULL,
    created_at timestamptz NOT NULL,
    due_at timestamptz NOT NULL,
    lane int NOT NULL,
    policy int NOT NULL,
    flags smallint NOT NULL,
    explicit smallint NOT NULL,
    timeout_ms bigint,
    parent bigint,
    start_by timestamptz,
    tags text[],
    unique_key text,
    idem_key text,
    debounce_key text,
    input text NOT NULL
) WITH (fillfactor = 95);
CREATE INDEX live_unknown ON $schema$.live(lane) WHERE (flags & 32) <> 0;
CREATE INDEX live_start_by ON $schema$.live(start_by) WHERE start_by IS NOT NULL;
CREATE INDEX live_parent ON $schema$.live(parent) WHERE parent IS NOT NULL;

-- flags: 1 has a row in past, 2 has a live key, 4 cancel requested (leases only), 8 has a timeout,
-- 16 has a start-by deadline, 32 its type was not known at submit.
CREATE TABLE $schema$.ready(
    pos bigint NOT NULL,
    task bigint NOT NULL,
    lane int NOT NULL,
    flags smallint NOT NULL,
    PRIMARY KEY (lane, pos)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE $schema$.later(
    due timestamptz NOT NULL,
    task bigint PRIMARY KEY,
    lane int NOT NULL,
    flags smallint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX later_due ON $schema$.later(lane, due, task);

-- One row per claimed batch. A task's token is (key, its secret): each has its own, found by the common half.
CREATE TABLE $schema$.lease(
    key bigint PRIMARY KEY,
    started_at timestamptz NOT NULL,
    deadline timestamptz,                 -- the earliest timeout among them
    session uuid NOT NULL,
    ids bigint[] NOT NULL,
    secrets bigint[] NOT NULL,
    flags smallint[] NOT NULL
) WITH (fillfactor = 50, toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE $schema$.lease ALTER ids SET STORAGE MAIN, ALTER secrets SET STORAGE MAIN, ALTER flags SET STORAGE MAIN;
CREATE INDEX lease_session ON $schema$.lease(session);
CREATE INDEX lease_deadline ON $schema$.lease(deadline) WHERE deadline IS NOT NULL;

-- What happened to a live task before: only for those to which something did.
CREATE TABLE $schema$.past(
    task bigint PRIMARY KEY,
    state smallint NOT NULL,              -- while waiting: 0 OPEN, 5 ERROR
    attempt int NOT NULL,                 -- used up, the running one not included
    claim_no int NOT NULL,
    generation int NOT NULL,
    crash_count int NOT NULL,
    crash_from timestamptz,               -- of the first crash in the window
    node bigint,
    claimed_at timestamptz,
    updated_at timestamptz NOT NULL,
    error text
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);

-- Blocked and background tasks.
CREATE TABLE $schema$.outside(
    task bigint PRIMARY KEY,
    state smallint NOT NULL,
    key bigint NOT NULL,
    secret bigint NOT NULL,
    session uuid NOT NULL,
    expires_at timestamptz,
    reason text NOT NULL
);
CREATE INDEX outside_expires ON $schema$.outside(expires_at) WHERE expires_at IS NOT NULL;

-- Why a running task is to stop.
CREATE TABLE $schema$.cancel_note(task bigint PRIMARY KEY, reason text NOT NULL);

CREATE TABLE $schema$.progress(
    task bigint PRIMARY KEY,
    secret bigint NOT NULL,
    step text NOT NULL,
    done bigint NOT NULL,
    total bigint,
    message text NOT NULL
) WITH (fillfactor = 50);

-- ---- keys -----------------------------------------------------------------------------------------

CREATE TABLE $schema$.idem_key(
    tenant bigint NOT NULL,
    key text NOT NULL,
    task bigint NOT NULL,
    hash text NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, key)
);
CREATE INDEX idem_key_expires ON $schema$.idem_key(expires_at);

-- kind 0: unique key of a live task; 1: debounce key of a task that may still wait.
CREATE TABLE $schema$.live_key(
    tenant bigint NOT NULL,
    kind smallint NOT NULL,
    type text NOT NULL,
    key text NOT NULL,
    task bigint NOT NULL,
    PRIMARY KEY (tenant, kind, type, key)
);
CREATE INDEX live_key_task ON $schema$.live_key(task);

CREATE TABLE $schema$.throttle_key(
    tenant bigint NOT NULL,
    type text NOT NULL,
    key text NOT NULL,
    task bigint NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (tenant, type, key)
);
CREATE INDEX throttle_key_until ON $schema$.throttle_key(until);

-- ---- what is over ---------------------------------------------------------------------------------

-- Finished tasks; part = period of the id * 16 + retention class. The last attempt is in the row itself.
CREATE TABLE $schema$.history(
    part int NOT NULL,
    id bigint NOT NULL,
    pos bigint NOT NULL,
    created_at timestamptz NOT NULL,
    due_at timestamptz NOT NULL,
    finished_at timestamptz NOT NULL,
    claimed_at timestamptz,
    lane int NOT NULL,
    policy int NOT NULL,
    flags smallint NOT NULL,
    explicit smallint NOT NULL,
    state smallint NOT NULL,
    ending smallint,                      -- how the last attempt ended; NULL: it ended without one
    attempt int NOT NULL,
    claim_no int NOT NULL,
    generation int NOT NULL,
    crash_count int NOT NULL,
    key bigint,                           -- of the holder whose outcome was accepted
    secret bigint,
    session uuid,
    node bigint,
    warning boolean NOT NULL,
    alone boolean NOT NULL,
    exit_code int,
    exit_signal int,
    timeout_ms bigint,
    parent bigint,
    start_by timestamptz,
    tags text[],
    unique_key text,
    idem_key text,
    debounce_key text,
    input text NOT NULL,
    output text,
    error text,
    reason text,
    stderr_tail text,
    PRIMARY KEY (id, part)
) PARTITION BY LIST (part);

-- Attempts that did not end their task; part = period of the task's id.
CREATE TABLE $schema$.attempt(
    part int NOT NULL,
    task bigint NOT NULL,
    claim_no int NOT NULL,
    attempt int NOT NULL,
    generation int NOT NULL,
    ending smallint NOT NULL,
    alone boolean NOT NULL,
    started_at timestamptz NOT NULL,
    finished_at timestamptz NOT NULL,
    key bigint,                           -- of the holder whose outcome was accepted, and what it led to
    secret bigint,
    to_state smallint,
    session uuid NOT NULL,
    node bigint,
    exit_code int,
    exit_signal int,
    error text,
    stderr_tail text,
    PRIMARY KEY (task, claim_no, part)
) PARTITION BY LIST (part);

-- One row per batch of equal transitions; the entry of ids[i] has number seq + i - 1. part = day of `at`.
CREATE SEQUENCE $schema$.audit_seq INCREMENT 1024;
CREATE TABLE $schema$.audit(
    part int NOT NULL,
    seq bigint NOT NULL,
    at timestamptz NOT NULL,
    tenant bigint NOT NULL,
    event smallint NOT NULL,
    from_state smallint,
    to_state smallint NOT NULL,
    attempt int NOT NULL,
    generation int NOT NULL,
    session uuid,
    actor text,
    reason text,
    span int8range NOT NULL,              -- from the lowest to the highest of ids
    ids bigint[] NOT NULL,
    PRIMARY KEY (seq, part)
) PARTITION BY LIST (part) ;
CREATE INDEX audit_span ON $schema$.audit USING gist (span);

-- Which period tables there are.
CREATE TABLE $schema$.leaf(
    name text PRIMARY KEY,                -- of the table, e.g. history_12_0
    parent text NOT NULL,                 -- history, attempt or audit
    part int NOT NULL,
    UNIQUE (parent, part)
);

CREATE FUNCTION $schema$.refuse_() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only: % is refused', TG_OP USING ERRCODE = '42501';
END $$;
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE ON $schema$.audit
    FOR EACH ROW EXECUTE FUNCTION $schema$.refuse_();
CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON $schema$.audit
    FOR EACH STATEMENT EXECUTE FUNCTION $schema$.refuse_();

-- Makes the period table of (parent, part) if it is not there. Safe when several do so at once, and attaching
-- does not stop readers or writers of the others.
CREATE FUNCTION $schema$.make_leaf_(which text, number int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    label text := which || '_' || CASE which WHEN 'history' THEN (number / 16) || '_' || (number % 16) ELSE number::text END;
BEGIN
    IF EXISTS (SELECT FROM $schema$.leaf l WHERE l.parent = which AND l.part = number) THEN RETURN; END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('$schema_name$', 7001));
    IF EXISTS (SELECT FROM $schema$.leaf l WHERE l.parent = which AND l.part = number) THEN RETURN; END IF;
    EXECUTE format('CREATE TABLE $schema$.%I (LIKE $schema$.%I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES INCLUDING STORAGE)', label, which);
    IF which = 'audit' THEN
        EXECUTE format('ALTER TABLE $schema$.%I ALTER ids SET STORAGE MAIN, SET (toast_tuple_target = 8160)', label);
        EXECUTE format('CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON $schema$.%I FOR EACH STATEMENT EXECUTE FUNCTION $schema$.refuse_()', label);
    END IF;
    EXECUTE format('ALTER TABLE $schema$.%I ATTACH PARTITION $schema$.%I FOR VALUES IN (%s)', which, label, number);
    INSERT INTO $schema$.leaf VALUES (label, which, number);
END $$;

CREATE FUNCTION $schema$.day_(at timestamptz) RETURNS int LANGUAGE sql IMMUTABLE AS
    'SELECT floor(extract(epoch FROM at) / 86400)::int';

-- The period that an id belongs to.
CREATE FUNCTION $schema$.period_(id bigint) RETURNS int LANGUAGE sql STABLE AS
    'SELECT coalesce((SELECT p.no FROM $schema$.period p WHERE p.first_id <= id ORDER BY p.first_id DESC LIMIT 1), 1)';

-- Consecutive ids [result, result + count). Blocks come one by one; a run that somebody broke is begun again.
CREATE FUNCTION $schema$.reserve_ids_(wanted int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    first bigint; last bigint; next bigint;
BEGIN
    IF wanted > 64 THEN PERFORM pg_advisory_xact_lock(hashtextextended('$schema_name$', 7002)); END IF;
    first := nextval('$schema$.task_id_seq');
    last := first;
    WHILE last + 64 - first < wanted LOOP
        next := nextval('$schema$.task_id_seq');
        IF next <> last + 64 THEN first := next; END IF;
        last := next;
    END LOOP;
    RETURN first;
END $$;

-- Begins a new period when the newest is a day old, and makes its tables. Those of the audit log a week ahead: whoever
-- writes to one that is missing makes it, and holds a lock until its own transaction ends.
CREATE FUNCTION $schema$.begin_period_() RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    newest $schema$.period%ROWTYPE; at timestamptz := $schema$.now_();
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('$schema_name$', 7001));
    SELECT * INTO newest FROM $schema$.period ORDER BY no DESC LIMIT 1;
    IF newest.no IS NULL OR newest.started_at <= at - interval '1 day' THEN
        INSERT INTO $schema$.period VALUES (coalesce(newest.no, 0) + 1, CASE WHEN newest.no IS NULL THEN 0 ELSE nextval('$schema$.task_id_seq') END, at)
        RETURNING * INTO newest;
    END IF;
    PERFORM $schema$.make_leaf_('attempt', newest.no);
    PERFORM $schema$.make_leaf_('history', newest.no * 16);
    PERFORM $schema$.make_leaf_('audit', $schema$.day_(at) + ahead) FROM generate_series(0, 7) ahead;
    RETURN newest.no;
END $$;

-- Whether a period table has something to be kept, or will have. Days are kept whole.
CREATE FUNCTION $schema$.leaf_needed_(f $schema$.leaf, keep_ms bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    kept_from timestamptz := date_trunc('day', ($schema$.now_() - keep_ms * interval '1 millisecond') AT TIME ZONE 'UTC') AT TIME ZONE 'UTC';
    newest int := (SELECT max(no) FROM $schema$.period);
    after bigint; needed boolean;
BEGIN
    IF f.parent = 'history' THEN
        -- What a live parent may still read stays.
        EXECUTE format('SELECT EXISTS (SELECT FROM $schema$.%1$I WHERE finished_at >= $1) OR ($2 AND NOT EXISTS (SELECT FROM $schema$.%1$I))
                OR EXISTS (SELECT FROM $schema$.%1$I h JOIN $schema$.live p ON p.id = h.parent)', f.name)
            INTO needed USING kept_from, f.part / 16 >= newest - 1;
    ELSIF f.parent = 'attempt' THEN
        -- Whoever had not yet heard of a period wrote to the one before it, the attempt or the outcome.
        needed := f.part >= newest - 1 OR EXISTS (SELECT FROM $schema$.leaf l WHERE l.parent = 'history' AND l.part / 16 BETWEEN f.part - 1 AND f.part + 1)
            OR EXISTS (SELECT FROM $schema$.live v
                       WHERE v.id >= (SELECT p.first_id FROM $schema$.period p WHERE p.no = greatest(f.part - 1, 1))
                         AND v.id < coalesce((SELECT p.first_id FROM $schema$.period p WHERE p.no = f.part + 2), 9223372036854775807));
    ELSE
        -- Nor while a task that it tells about is still there; tasks of that day have ids below those of later periods.
        SELECT min(p.first_id) INTO after FROM $schema$.period p WHERE p.started_at >= to_timestamp((f.part + 1) * 86400.0);
        needed := f.part >= $schema$.day_(kept_from) OR after IS NULL;
        IF NOT needed THEN
            EXECUTE format('SELECT EXISTS (
                SELECT FROM (SELECT id FROM $schema$.live WHERE id < $1 UNION ALL SELECT id FROM $schema$.history WHERE id < $1) t
                WHERE EXISTS (SELECT FROM $schema$.%I a WHERE a.span @> t.id AND t.id = ANY (a.ids)))', f.name) INTO needed USING after;
        END IF;
    END IF;
    RETURN needed;
END $$;

-- Drops a period table when nothing in it is to be kept any longer.
CREATE FUNCTION $schema$.drop_leaf_(label text, keep_ms bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    f $schema$.leaf%ROWTYPE;
BEGIN
    SELECT * INTO f FROM $schema$.leaf l WHERE l.name = label FOR UPDATE;
    IF f.name IS NULL OR $schema$.leaf_needed_(f, keep_ms) THEN RETURN false; END IF;
    -- Whoever is writing to it is waited for, nobody begins to, and what was written meanwhile is seen. Readers and
    -- the other period tables are not kept waiting by the second look.
    EXECUTE format('LOCK TABLE $schema$.%I IN SHARE MODE', label);
    IF $schema$.leaf_needed_(f, keep_ms) THEN RETURN false; END IF;
    DELETE FROM $schema$.leaf l WHERE l.name = label;
    EXECUTE format('DROP TABLE $schema$.%I', label);
    RETURN true;
END $$;

-- ---- retentions -----------------------------------------------------------------------------------

-- The class of a retention, made now or before. The caller holds lock 7005.
CREATE FUNCTION $schema$.class_of_(wanted_ms bigint) RETURNS smallint LANGUAGE plpgsql AS $$
DECLARE
    found smallint;
BEGIN
    IF wanted_ms IS NULL THEN RETURN 0; END IF;
    UPDATE $schema$.retention r SET unused_since = NULL WHERE r.keep_ms = wanted_ms RETURNING r.class INTO found;
    IF found IS NOT NULL THEN RETURN found; END IF;
    SELECT min(c) INTO found FROM generate_series(1, 15) c WHERE NOT EXISTS (SELECT FROM $schema$.retention r WHERE r.class = c);
    IF found IS NULL THEN
        RAISE EXCEPTION 'a retention of % ms would be the 17th: 16 different ones are in use. Give the queue one of those, or change other queues and '
            'wait until what they kept is gone', wanted_ms USING ERRCODE = '54000';
    END IF;
    INSERT INTO $schema$.retention(class, keep_ms) VALUES (found, wanted_ms);
    RETURN found;
END $$;

CREATE FUNCTION $schema$.set_queue_(queue_name text, is_paused boolean, most bigint, complete_ms bigint, dead_ms bigint, cancelled_ms bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    complete smallint; dead smallint; cancelled smallint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('$schema_name$', 7005));
    complete := $schema$.class_of_(complete_ms);
    dead := $schema$.class_of_(dead_ms);
    cancelled := $schema$.class_of_(cancelled_ms);
    INSERT INTO $schema$.queue AS q (name, paused, cap, keep_complete_ms, keep_dead_ms, keep_cancelled_ms, class_complete, class_dead, class_cancelled)
    VALUES (queue_name, is_paused, most, complete_ms, dead_ms, cancelled_ms, complete, dead, cancelled)
    ON CONFLICT (name) DO UPDATE SET paused = excluded.paused, cap = excluded.cap, keep_complete_ms = excluded.keep_complete_ms,
        keep_dead_ms = excluded.keep_dead_ms, keep_cancelled_ms = excluded.keep_cancelled_ms, class_complete = excluded.class_complete,
        class_dead = excluded.class_dead, class_cancelled = excluded.class_cancelled;
END $$;

-- Frees classes that nothing refers to. Not at once: a task that is being settled now may have read its queue's class
-- before that was changed, and its history table comes with its commit.
CREATE FUNCTION $schema$.retire_classes_() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := $schema$.now_();
BEGIN
    IF NOT EXISTS (SELECT FROM $schema$.retention WHERE class > 0) THEN RETURN; END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('$schema_name$', 7005));
    UPDATE $schema$.retention r SET unused_since = CASE WHEN u.unused THEN coalesce(r.unused_since, at) END
    FROM (SELECT x.class, NOT EXISTS (SELECT FROM $schema$.queue q WHERE x.class IN (q.class_complete, q.class_dead, q.class_cancelled))
              AND NOT EXISTS (SELECT FROM $schema$.leaf l WHERE l.parent = 'history' AND l.part % 16 = x.class) AS unused
          FROM $schema$.retention x) u
    WHERE u.class = r.class AND r.class > 0 AND u.unused <> (r.unused_since IS NOT NULL);
    DELETE FROM $schema$.retention WHERE class > 0 AND unused_since <= at - interval '1 hour';
END $$;

SELECT $schema$.begin_period_();
