-- The common success, in half of the plan that complete.sql needs: of tasks to which nothing happened before, that hold nothing and
-- have nothing in other tables. If one of the batch is different, nothing is done and the answer says so.
-- The leases are locked here, not by an earlier statement: what others did to them while this one waited is seen in them (and one
-- that was told to stop, or holds something, makes it no plain success), and of live tasks the last version is deleted. Nothing else is read
-- that depends on them.
-- $1 task, $2 key, $3 secret, $4 period, $5 output; $6 the distinct keys, sorted; $7 every 500th of the tasks, sorted: where the next
-- audit row begins
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
l AS MATERIALIZED (
    SELECT e.*, (SELECT s.node FROM $schema$.session s WHERE s.id = e.session) AS node
    FROM $schema$.lease e WHERE e.key = ANY ($6::bigint[]) ORDER BY e.key FOR UPDATE),
h AS MATERIALIZED (
    SELECT u.task, x.ord IS NOT NULL AS mine, u.flags, l.key, u.secret, l.session, l.node, l.started_at, x.ord, x.output
    FROM l CROSS JOIN LATERAL unnest(l.ids, l.secrets, l.flags) u(task, secret, flags)
    LEFT JOIN (
        SELECT u.task, u.ord, ($2::bigint[])[u.ord] AS key, ($3::bigint[])[u.ord] AS secret, u.output
        -- The outputs are not sent when there are none.
        FROM unnest($1::bigint[], $5::text[]) WITH ORDINALITY u(task, output, ord)) x ON x.task = u.task AND x.key = l.key AND x.secret = u.secret),
-- Has a past (1), a key (2), was told to stop (4), is alone (64), holds something (2048), has an order key (4096). Whether a table holds
-- rows would take passing over all that are gone from it but not cleaned away: where it takes no room it holds none, and what was written while this waited
-- for the leases is seen.
o AS MATERIALIZED (
    SELECT count(*) = cardinality($1::bigint[]) AND bit_or(h.flags) & (1 | 2 | 4 | 64 | 2048 | 4096) = 0
        AND pg_relation_size('$schema$.progress') = 0 AND pg_relation_size('$schema$.task_result') = 0
        AND pg_relation_size('$schema$.workflow_member') = 0 AS plain
    FROM h WHERE h.mine),
k AS MATERIALIZED (
    SELECT key, array_agg(task) FILTER (WHERE NOT mine) AS ids, array_agg(secret) FILTER (WHERE NOT mine) AS secrets,
        array_agg(flags) FILTER (WHERE NOT mine) AS flags
    FROM h WHERE (SELECT plain FROM o) GROUP BY key HAVING bool_or(mine)),
lu AS (UPDATE $schema$.lease e SET ids = k.ids, secrets = k.secrets, flags = k.flags FROM k WHERE e.key = k.key AND e.key = ANY ($6::bigint[]) AND k.ids IS NOT NULL),
ld AS (DELETE FROM $schema$.lease e WHERE e.key = ANY (ARRAY(SELECT key FROM k WHERE ids IS NULL))),
v AS (DELETE FROM $schema$.live z WHERE z.id = ANY (ARRAY(SELECT task FROM h WHERE mine AND (SELECT plain FROM o))) RETURNING z.*),
c AS MATERIALIZED (
    SELECT c.id, c.tenant, q.class_complete AS class FROM $schema$.lane c JOIN $schema$.queue q ON q.id = c.queue
    WHERE c.id = ANY (ARRAY(SELECT DISTINCT lane FROM v))),
y AS (DELETE FROM $schema$.wait z WHERE z.task = ANY (ARRAY(SELECT id FROM v WHERE (flags & 1024) <> 0))),
ym AS (DELETE FROM $schema$.wait_member z WHERE z.waiter = ANY (ARRAY(SELECT id FROM v WHERE (flags & 1024) <> 0))),
-- Full joins, as in complete.sql.
i AS (
    INSERT INTO $schema$.history(part, id, pos, created_at, due_at, finished_at, claimed_at, lane, policy, flags, explicit, state, ending, attempt,
        claim_no, generation, crash_count, key, secret, session, node, warning, alone, timeout_ms, parent, start_by, tags, unique_key,
        idem_key, debounce_key, input, output)
    SELECT ($4::int[])[h.ord] * 16 + c.class, v.id, v.pos, v.created_at, v.due_at, (SELECT t FROM n), h.started_at, v.lane, v.policy, v.flags, v.explicit, 4, 1, 1,
        1, 1, 0, h.key, h.secret, h.session, h.node, false, false, v.timeout_ms, v.parent, v.start_by, v.tags, v.unique_key,
        v.idem_key, v.debounce_key, v.input, h.output
    FROM v FULL JOIN (SELECT * FROM h WHERE mine) h ON h.task = v.id FULL JOIN c ON c.id = v.lane
    WHERE coalesce(v.id, 0) <> 0
    RETURNING id, part, lane, flags, session),
t AS (INSERT INTO $schema$.history_change(part, lane, state, n) SELECT i.part, i.lane, 4, count(*) FROM i GROUP BY 1, 2),
a AS (
    INSERT INTO $schema$.audit(part, seq, at, tenant, event, from_state, to_state, attempt, generation, session, actor, span, ids)
    SELECT $schema$.day_(n.t), nextval('$schema$.audit_seq'), n.t, g.tenant, 3, 1, 4, 1, 1, g.session, 'worker', g.span, g.ids
    FROM n, (SELECT c.tenant, i.session, int8range(min(i.id), max(i.id), '[]') AS span, array_agg(i.id) AS ids
             FROM i FULL JOIN c ON c.id = i.lane WHERE coalesce(i.id, 0) <> 0
             GROUP BY c.tenant, i.session, width_bucket(i.id, $7::bigint[])) g)
-- Whether it was done, and which of them somebody waits for, as the row said when it was deleted.
SELECT coalesce((SELECT plain FROM o), false), (SELECT array_agg(id) FROM i WHERE (flags & 128) <> 0)
