-- Tasks that wait for others. The counter is on the wait, and each member counts once: who ends it takes the wait's lock.
-- flags, continued: 128 others wait for it, 256 its next attempt comes after a wait, 512 that has failed, 1024 it has a wait.
CREATE TABLE $schema$.wait(
    task bigint PRIMARY KEY,
    pending int NOT NULL,
    failed int NOT NULL,
    total int NOT NULL,
    on_failure smallint NOT NULL,
    any_success boolean NOT NULL,
    need_success boolean NOT NULL,
    started boolean NOT NULL,             -- in the middle of its work, not before it
    open boolean NOT NULL                 -- it goes on; the task is BLOCKED
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE $schema$.wait_member(
    waiter bigint NOT NULL,
    no int NOT NULL,
    asked bigint NOT NULL,
    task bigint NOT NULL,
    ended smallint,
    PRIMARY KEY (waiter, no)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX wait_member_task ON $schema$.wait_member(task);

-- What is to be cancelled because of a failure beside it. Done after the transaction that found out: it would have to take
-- locks that others hold who want its own.
CREATE TABLE $schema$.cancel_due(
    task bigint NOT NULL,
    waiter bigint NOT NULL,
    PRIMARY KEY (task, waiter)
);

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
    coalesce(y.pending, 0) AS waiting_for, v.flags::int AS flags
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
LEFT JOIN $schema$.wait y ON y.task = v.id AND y.open;

CREATE OR REPLACE VIEW $schema$.task_task_dep AS
SELECT DISTINCT m.waiter AS task_id, m.task AS depends_on FROM $schema$.wait_member m;

-- Whether a period table has something to be kept, or will have. Days are kept whole.
CREATE OR REPLACE FUNCTION $schema$.leaf_needed_(f $schema$.leaf, keep_ms bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    kept_from timestamptz := date_trunc('day', ($schema$.now_() - keep_ms * interval '1 millisecond') AT TIME ZONE 'UTC') AT TIME ZONE 'UTC';
    newest int := (SELECT max(no) FROM $schema$.period);
    after bigint; needed boolean;
BEGIN
    IF f.parent = 'history' THEN
        -- What a live parent, or who waited for it, may still read stays.
        EXECUTE format('SELECT EXISTS (SELECT FROM $schema$.%1$I WHERE finished_at >= $1) OR ($2 AND NOT EXISTS (SELECT FROM $schema$.%1$I))
                OR EXISTS (SELECT FROM $schema$.%1$I h JOIN $schema$.live p ON p.id = h.parent)
                OR EXISTS (SELECT FROM $schema$.wait_member m JOIN $schema$.%1$I h ON h.id = m.task)', f.name)
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
