-- The writes of a drain and nothing else: no session, no fence, no order to find, no SKIP LOCKED, no client. On a schema "stint" as
-- `stint store migrate` makes it, with its indexes and triggers. psql variables: tasks, input.
-- A claim takes rows out of ready, writes a lease per 256 tasks and an audit row per 256; a settle takes the leases and the live rows
-- away, writes history, its tally, and an audit row per 500. One commit each, as src/store/postgres/queries/claim.sql and complete.sql.
CREATE SCHEMA compare;
INSERT INTO stint.lane(queue, type, tenant, priority, suspect) SELECT q.id, 'bench.noop', 1, 128, false FROM stint.queue q WHERE q.name = 'default';
INSERT INTO stint.policy(retry) VALUES ('{}');
CREATE TABLE compare.constant AS
    SELECT (SELECT max(id) FROM stint.lane) AS lane, (SELECT max(id) FROM stint.policy) AS policy, (SELECT max(no) * 16 FROM stint.period) AS part,
        stint.day_(clock_timestamp()) AS day, gen_random_uuid() AS session;
INSERT INTO stint.live(id, pos, created_at, due_at, lane, policy, flags, explicit, input)
    SELECT g, g, clock_timestamp(), clock_timestamp(), c.lane, c.policy, 0, 1, :'input' FROM compare.constant c, generate_series(1, :tasks) g;
INSERT INTO stint.ready(lane, pos, task, flags) SELECT c.lane, g, g, 0 FROM compare.constant c, generate_series(1, :tasks) g;
INSERT INTO stint.audit(part, seq, at, tenant, event, to_state, attempt, generation, actor, span, ids)
    SELECT c.day, nextval('stint.audit_seq'), clock_timestamp(), 1, 0, 0, 0, 1, 'bench', int8range(min(g), max(g), '[]'), array_agg(g)
    FROM compare.constant c, generate_series(1, :tasks) g GROUP BY c.day, (g - 1) / 500;

CREATE PROCEDURE compare.drain(low bigint, high bigint, size int) LANGUAGE plpgsql AS $$
DECLARE
    c compare.constant%ROWTYPE; i bigint := low; last bigint; taken bigint[]; bytes bigint; at timestamptz;
BEGIN
    SELECT * INTO c FROM compare.constant;
    WHILE i <= high LOOP
        last := least(i + size - 1, high);
        at := clock_timestamp();
        WITH g AS (DELETE FROM stint.ready r WHERE r.lane = c.lane AND r.pos BETWEEN i AND last RETURNING r.task)
        SELECT array_agg(g.task ORDER BY g.task), sum(length(v.input)) INTO taken, bytes
        FROM g JOIN (SELECT id, input FROM stint.live WHERE id BETWEEN i AND last) v ON v.id = g.task;
        INSERT INTO stint.lease(key, started_at, session, ids, secrets, flags)
            SELECT min(u.id), at, c.session, array_agg(u.id), array_agg(u.id * 48271), array_agg(0::smallint)
            FROM unnest(taken) WITH ORDINALITY u(id, n) GROUP BY (u.n - 1) / 256;
        INSERT INTO stint.audit(part, seq, at, tenant, event, from_state, to_state, attempt, generation, session, actor, span, ids)
            SELECT c.day, nextval('stint.audit_seq') + 512, at, 1, 1, 0, 1, 1, 1, c.session, 'worker', int8range(min(u.id), max(u.id), '[]'), array_agg(u.id)
            FROM unnest(taken) WITH ORDINALITY u(id, n) GROUP BY (u.n - 1) / 256;
        COMMIT;
        at := clock_timestamp();
        DELETE FROM stint.lease e WHERE e.key = ANY (taken);
        WITH v AS (DELETE FROM stint.live z WHERE z.id = ANY (taken) RETURNING z.*)
        INSERT INTO stint.history(part, id, pos, created_at, due_at, finished_at, claimed_at, lane, policy, flags, explicit, state, ending, attempt,
            claim_no, generation, crash_count, key, secret, session, node, warning, alone, input, output)
        SELECT c.part, v.id, v.pos, v.created_at, v.due_at, at, at, v.lane, v.policy, v.flags, v.explicit, 4, 1, 1, 1, 1, 0, i, v.id * 48271,
            c.session, 1, false, false, v.input, 'null' FROM v;
        INSERT INTO stint.history_change(part, lane, state, n) VALUES (c.part, c.lane, 4, cardinality(taken));
        INSERT INTO stint.audit(part, seq, at, tenant, event, from_state, to_state, attempt, generation, session, actor, span, ids)
            SELECT c.day, nextval('stint.audit_seq'), at, 1, 3, 1, 4, 1, 1, c.session, 'worker', int8range(min(u.id), max(u.id), '[]'), array_agg(u.id)
            FROM unnest(taken) WITH ORDINALITY u(id, n) GROUP BY (u.n - 1) / 500;
        COMMIT;
        i := last + 1;
    END LOOP;
END $$;
