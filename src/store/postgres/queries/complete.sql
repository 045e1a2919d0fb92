-- Success, the common ending: leaves the lease, moves to history, one audit row per batch. What is missing in the
-- answer is not held with that token. The leases were locked by an earlier statement: what others did to them, and what else
-- they wrote meanwhile, is seen here.
-- $1 task, $2 key, $3 secret, $4 period, $5 output, $6 warning, $7 exit_code, $8 stderr_tail; $9 the distinct keys, sorted;
-- $10 every 500th of the tasks, sorted: where the next audit row begins
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
l AS MATERIALIZED (
    SELECT e.*, (SELECT s.node FROM $schema$.session s WHERE s.id = e.session) AS node
    FROM $schema$.lease e WHERE e.key = ANY ($9::bigint[]) ORDER BY e.key FOR UPDATE),
x AS MATERIALIZED (
    SELECT u.task, u.ord, ($2::bigint[])[u.ord] AS key, ($3::bigint[])[u.ord] AS secret, ($4::int[])[u.ord] AS period, u.output, u.warning,
        u.exit_code, u.stderr_tail
    -- The last four are not sent when they hold nothing.
    FROM unnest($1::bigint[], $5::text[], $6::boolean[], $7::int[], $8::text[]) WITH ORDINALITY u(task, output, warning, exit_code, stderr_tail, ord)
    -- One with items in error is no plain success: left out, as one that is not held. Not whether the table holds a row: that would
    -- pass over all that are gone from it but not cleaned away yet. Where it takes no room it holds none.
    WHERE NOT ((SELECT pg_relation_size('$schema$.task_result') > 0)
        AND coalesce((SELECT r.errors > 0 FROM $schema$.task_result r WHERE r.task = u.task), false))),
h AS MATERIALIZED (
    SELECT u.task, x.task IS NOT NULL AS mine, u.flags, l.key, u.secret, l.session, l.node, l.started_at, x.ord, x.period, x.output, x.warning,
        x.exit_code, x.stderr_tail
    FROM l CROSS JOIN LATERAL unnest(l.ids, l.secrets, l.flags) u(task, secret, flags)
    LEFT JOIN x ON x.task = u.task AND x.key = l.key AND x.secret = u.secret),
k AS MATERIALIZED (
    SELECT key, array_agg(task) FILTER (WHERE NOT mine) AS ids, array_agg(secret) FILTER (WHERE NOT mine) AS secrets,
        array_agg(flags) FILTER (WHERE NOT mine) AS flags
    FROM h GROUP BY key HAVING bool_or(mine)),
lu AS (UPDATE $schema$.lease e SET ids = k.ids, secrets = k.secrets, flags = k.flags FROM k WHERE e.key = k.key AND e.key = ANY ($9::bigint[]) AND k.ids IS NOT NULL),
ld AS (DELETE FROM $schema$.lease e WHERE e.key = ANY (ARRAY(SELECT key FROM k WHERE ids IS NULL))),
-- Which of them have something in other tables, read once.
f AS MATERIALIZED (
    SELECT array_agg(task) AS tasks, array_agg(task) FILTER (WHERE (flags & 1) <> 0) AS past, array_agg(task) FILTER (WHERE (flags & 2) <> 0) AS keyed,
        array_agg(task) FILTER (WHERE (flags & 4) <> 0) AS noted
    FROM h WHERE mine),
b AS MATERIALIZED (SELECT z.* FROM $schema$.past z WHERE z.task = ANY ((SELECT past FROM f)::bigint[])),
v AS (DELETE FROM $schema$.live z WHERE z.id = ANY ((SELECT tasks FROM f)::bigint[]) RETURNING z.*),
c AS MATERIALIZED (
    SELECT c.id, c.tenant, c.type, q.class_complete AS class FROM $schema$.lane c JOIN $schema$.queue q ON q.id = c.queue
    WHERE c.id = ANY (ARRAY(SELECT DISTINCT lane FROM v))),
y AS (DELETE FROM $schema$.wait z WHERE z.task = ANY (ARRAY(SELECT id FROM v WHERE (flags & 1024) <> 0))),
ym AS (DELETE FROM $schema$.wait_member z WHERE z.waiter = ANY (ARRAY(SELECT id FROM v WHERE (flags & 1024) <> 0))),
p AS (DELETE FROM $schema$.past z WHERE z.task = ANY ((SELECT past FROM f)::bigint[])),
u AS (DELETE FROM $schema$.live_key z WHERE z.task = ANY ((SELECT keyed FROM f)::bigint[])),
g AS (DELETE FROM $schema$.progress z WHERE z.task = ANY ((SELECT f.tasks FROM f WHERE pg_relation_size('$schema$.progress') > 0)::bigint[])),
w AS (DELETE FROM $schema$.cancel_note z WHERE z.task = ANY ((SELECT noted FROM f)::bigint[])),
-- Full joins, because those are never done by comparing each with each: what the planner believes of how many rows there
-- are, which may be none, does not matter then. Each row of v has one of h and one of c.
i AS (
    INSERT INTO $schema$.history(part, id, pos, created_at, due_at, finished_at, claimed_at, lane, policy, flags, explicit, state, ending, attempt,
        claim_no, generation, crash_count, key, secret, session, node, warning, alone, exit_code, timeout_ms, parent, start_by, tags, unique_key,
        idem_key, debounce_key, input, output, stderr_tail)
    SELECT h.period * 16 + c.class, v.id, v.pos, v.created_at, v.due_at, (SELECT t FROM n), h.started_at, v.lane, v.policy, (v.flags | (h.flags & 4))::smallint,
        v.explicit, 4, 1, coalesce(b.attempt, 0) + 1, coalesce(b.claim_no, 0) + 1, coalesce(b.generation, 1), coalesce(b.crash_count, 0), h.key,
        h.secret, h.session, h.node, coalesce(h.warning, false), (h.flags & 64) <> 0, h.exit_code, v.timeout_ms, v.parent, v.start_by, v.tags, v.unique_key,
        v.idem_key, v.debounce_key, v.input, h.output, h.stderr_tail
    FROM v FULL JOIN (SELECT * FROM h WHERE mine) h ON h.task = v.id FULL JOIN c ON c.id = v.lane FULL JOIN b ON b.task = v.id
    WHERE coalesce(v.id, 0) <> 0
    RETURNING id, part, lane, flags, attempt, generation, session),
t AS (INSERT INTO $schema$.history_change(part, lane, state, n) SELECT i.part, i.lane, 4, count(*) FROM i GROUP BY 1, 2),
-- If a join waits for its type, that is an event.
e AS (
    INSERT INTO $schema$.published(tenant, source, type, data, time, cause, depth, state, tries, published_at, due_at)
    SELECT c.tenant, 'stint', 'stint.task.complete', '{"task":"' || i.id || '"}', n.t, i.id, $schema$.event_depth_(i.id), 0, 0, n.t, n.t
    FROM n CROSS JOIN i JOIN c ON c.id = i.lane
    WHERE (SELECT EXISTS (SELECT FROM $schema$.workflow_member)) AND EXISTS (SELECT FROM $schema$.workflow_member m WHERE m.tenant = c.tenant AND m.type = c.type)),
a AS (
    INSERT INTO $schema$.audit(part, seq, at, tenant, event, from_state, to_state, attempt, generation, session, actor, span, ids)
    SELECT $schema$.day_(n.t), nextval('$schema$.audit_seq'), n.t, o.tenant, 3, 1, 4, o.attempt, o.generation, o.session, 'worker', o.span, o.ids
    FROM n, (SELECT c.tenant, i.attempt, i.generation, i.session, int8range(min(i.id), max(i.id), '[]') AS span, array_agg(i.id) AS ids
             FROM i FULL JOIN c ON c.id = i.lane WHERE coalesce(i.id, 0) <> 0
             GROUP BY c.tenant, i.attempt, i.generation, i.session, width_bucket(i.id, $10::bigint[])) o)
-- Which of them are done, by their places in $1, and of these: somebody waits for it, as the row said when it was deleted
-- (others may have begun to after the leases were read); it held resources; it was the head of an order key.
SELECT array_agg(ord), array_agg(ord) FILTER (WHERE task IN (SELECT id FROM i WHERE (flags & 128) <> 0)),
    array_agg(ord) FILTER (WHERE (flags & 2048) <> 0), array_agg(ord) FILTER (WHERE (flags & 4096) <> 0)
FROM h WHERE mine
