-- Success, the common ending: leaves the lease, moves to history, one audit row per batch. An id that is missing in the
-- answer is not held with that token. The leases were locked by an earlier statement: what others did to them, and what else
-- they wrote meanwhile, is seen here.
-- $1 task, $2 key, $3 secret, $4 period, $5 output, $6 warning, $7 exit_code, $8 stderr_tail; $9 the distinct keys, sorted
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
l AS MATERIALIZED (
    SELECT e.*, (SELECT s.node FROM $schema$.session s WHERE s.id = e.session) AS node
    FROM $schema$.lease e WHERE e.key = ANY ($9::bigint[]) ORDER BY e.key FOR UPDATE),
x AS MATERIALIZED (
    SELECT u.* FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::int[], $5::text[], $6::boolean[], $7::int[], $8::text[])
        u(task, key, secret, period, output, warning, exit_code, stderr_tail)
    -- One with items in error is no plain success: left out, as one that is not held.
    WHERE NOT coalesce((SELECT r.errors > 0 FROM $schema$.task_result r WHERE r.task = u.task), false)),
h AS MATERIALIZED (
    SELECT l.key, u.task, u.secret, u.flags, l.session, l.node, l.started_at, x.task IS NOT NULL AS mine, x.period, x.output, x.warning,
        x.exit_code, x.stderr_tail
    FROM l CROSS JOIN LATERAL unnest(l.ids, l.secrets, l.flags) u(task, secret, flags)
    LEFT JOIN x ON x.task = u.task AND x.key = l.key AND x.secret = u.secret),
k AS MATERIALIZED (
    SELECT key, array_agg(task) FILTER (WHERE NOT mine) AS ids, array_agg(secret) FILTER (WHERE NOT mine) AS secrets,
        array_agg(flags) FILTER (WHERE NOT mine) AS flags
    FROM h GROUP BY key HAVING bool_or(mine)),
lu AS (UPDATE $schema$.lease e SET ids = k.ids, secrets = k.secrets, flags = k.flags FROM k WHERE e.key = k.key AND e.key = ANY ($9::bigint[]) AND k.ids IS NOT NULL),
ld AS (DELETE FROM $schema$.lease e WHERE e.key = ANY (ARRAY(SELECT key FROM k WHERE ids IS NULL))),
-- Read here and deleted below, not read from what was deleted: a join with that is estimated by what the planner believes
-- the table to hold, which may be nothing. Nobody else changes what the locked lease holds.
o AS MATERIALIZED (
    SELECT v.*, h.period, h.key, h.secret, h.session, h.node, h.started_at, h.flags AS lease_flags, h.output, h.warning, h.exit_code, h.stderr_tail,
        coalesce(p.attempt, 0) + 1 AS attempt, coalesce(p.claim_no, 0) + 1 AS claim_no, coalesce(p.generation, 1) AS generation,
        coalesce(p.crash_count, 0) AS crash_count, c.tenant, c.type, q.class_complete AS class, row_number() OVER () AS rn
    FROM h JOIN $row live v h.task$ JOIN $schema$.lane c ON c.id = v.lane JOIN $schema$.queue q ON q.id = c.queue
    LEFT JOIN LATERAL (SELECT f.* FROM $schema$.past f WHERE f.task = h.task AND (h.flags & 1) <> 0 OFFSET 0) p ON true
    WHERE h.mine),
v AS (DELETE FROM $schema$.live z WHERE z.id = ANY (ARRAY(SELECT task FROM h WHERE mine)) RETURNING z.id, z.flags),
y AS (DELETE FROM $schema$.wait z WHERE z.task = ANY (ARRAY(SELECT id FROM o WHERE (flags & 1024) <> 0))),
ym AS (DELETE FROM $schema$.wait_member z WHERE z.waiter = ANY (ARRAY(SELECT id FROM o WHERE (flags & 1024) <> 0))),
p AS (DELETE FROM $schema$.past z WHERE z.task = ANY (ARRAY(SELECT task FROM h WHERE mine AND (flags & 1) <> 0))),
u AS (DELETE FROM $schema$.live_key z WHERE z.task = ANY (ARRAY(SELECT task FROM h WHERE mine AND (flags & 2) <> 0))),
g AS (DELETE FROM $schema$.progress z WHERE z.task = ANY (ARRAY(SELECT task FROM h WHERE mine))),
w AS (DELETE FROM $schema$.cancel_note z WHERE z.task = ANY (ARRAY(SELECT task FROM h WHERE mine AND (flags & 4) <> 0))),
i AS (
    INSERT INTO $schema$.history(part, id, pos, created_at, due_at, finished_at, claimed_at, lane, policy, flags, explicit, state, ending, attempt,
        claim_no, generation, crash_count, key, secret, session, node, warning, alone, exit_code, timeout_ms, parent, start_by, tags, unique_key,
        idem_key, debounce_key, input, output, stderr_tail)
    SELECT o.period * 16 + o.class, o.id, o.pos, o.created_at, o.due_at, n.t, o.started_at, o.lane, o.policy, (o.flags | (o.lease_flags & 4))::smallint,
        o.explicit, 4, 1, o.attempt, o.claim_no, o.generation, o.crash_count, o.key, o.secret, o.session, o.node, o.warning, (o.lease_flags & 64) <> 0,
        o.exit_code, o.timeout_ms, o.parent, o.start_by, o.tags, o.unique_key, o.idem_key, o.debounce_key, o.input, o.output, o.stderr_tail
    FROM o, n),
t AS (
    INSERT INTO $schema$.history_change(part, lane, state, n)
    SELECT o.period * 16 + o.class, o.lane, 4, count(*) FROM o GROUP BY 1, 2),
-- If a join waits for its type, that is an event.
e AS (
    INSERT INTO $schema$.published(tenant, source, type, data, time, cause, depth, state, tries, published_at, due_at)
    SELECT o.tenant, 'stint', 'stint.task.complete', '{"task":"' || o.id || '"}', n.t, o.id, $schema$.event_depth_(o.id), 0, 0, n.t, n.t
    FROM o, n WHERE (SELECT EXISTS (SELECT FROM $schema$.workflow_member)) AND EXISTS (SELECT FROM $schema$.workflow_member m WHERE m.tenant = o.tenant AND m.type = o.type)),
a AS (
    INSERT INTO $schema$.audit(part, seq, at, tenant, event, from_state, to_state, attempt, generation, session, actor, span, ids)
    SELECT $schema$.day_(n.t), nextval('$schema$.audit_seq'), n.t, o.tenant, 3, 1, 4, o.attempt, o.generation, o.session, 'worker', o.span, o.ids
    FROM n, (SELECT tenant, attempt, generation, session, int8range(min(id), max(id), '[]') AS span, array_agg(id) AS ids
             FROM o GROUP BY tenant, attempt, generation, session, (rn - 1) / 500) o)
-- The flag as it is now, not as it was read above: others may have begun to wait for the task meanwhile.
SELECT task, key, task IN (SELECT id FROM v WHERE (flags & 128) <> 0), (flags & 2048) <> 0, (flags & 4096) <> 0 FROM h WHERE mine
