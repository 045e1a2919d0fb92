-- The common claim, in a third of the plan that claim.sql needs: one lane serves the claimer, and what waits there has never run
-- and needs nothing but its turn. Where that is not so it takes nothing and says so, and claim.sql decides.
-- The claimer: $1 session, $2 queues (empty = all), $3 types, $4 suspects (never); $5 limit, $6 keys (one per 256 tasks), $7 secrets
-- (one per task), $8 the lane, $9 the position below which it was found empty, $10 the policies that the caller knows, $11 its tenant
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
s AS MATERIALIZED (SELECT FROM $schema$.session z WHERE z.id = $1::uuid AND $passes session$ FOR KEY SHARE),
-- Whether the lane is the only one that serves, nothing in it needs a plan, nothing has become due, and no suspect waits.
o AS MATERIALIZED (
    SELECT EXISTS (SELECT FROM s) AS live, count(*) FILTER (WHERE $passes alone$) = 1 AND bool_or(l.id = $8::int)
        AND NOT bool_or(CASE WHEN l.suspect THEN EXISTS (SELECT FROM $schema$.ready r WHERE r.lane = l.id OFFSET 0)
                OR EXISTS (SELECT FROM $schema$.later r WHERE r.lane = l.id AND $passes due$ OFFSET 0)
            ELSE l.placement <> '' OR EXISTS (
                SELECT FROM $schema$.resource e
                WHERE e.matches IS NOT NULL AND ('queue:' || lower(q.name) LIKE e.matches OR 'type:' || lower(l.type) LIKE e.matches)) END)
        AND NOT EXISTS (SELECT FROM $schema$.queue_order)
        AND NOT EXISTS (SELECT FROM $schema$.later r WHERE r.lane = $8::int AND $passes due$ OFFSET 0) AS single
    FROM $schema$.lane l JOIN $schema$.queue q ON q.id = l.queue WHERE $passes lane$),
p AS MATERIALIZED (
    SELECT q.tid, q.task, q.pos, q.flags, v.input, v.parent, v.policy, v.timeout_ms FROM (
        SELECT r.ctid AS tid, r.task, r.pos, r.flags FROM $schema$.ready r
        WHERE r.lane = $8::int AND r.pos > $9::bigint AND (SELECT live AND single FROM o)
        ORDER BY r.pos LIMIT $5::int FOR UPDATE SKIP LOCKED) q
    JOIN $row live v q.task$),
-- None of them has a past (1), a start-by deadline (16) or an order key (4096).
f AS MATERIALIZED (SELECT coalesce(bool_and((p.flags & (1 | 16 | 4096)) = 0 AND p.policy = ANY ($10::int[])), true) AS plain FROM p),
g AS (DELETE FROM $schema$.ready WHERE ctid = ANY (ARRAY(SELECT p.tid FROM p WHERE (SELECT plain FROM f)))),
x AS MATERIALIZED (SELECT p.*, row_number() OVER () AS rn FROM p WHERE (SELECT plain FROM f)),
c AS MATERIALIZED (
    SELECT (x.rn - 1) / 256 + 1 AS no, array_agg(x.task) AS ids, array_agg(($7::bigint[])[x.rn]) AS secrets, array_agg((x.flags & ~8192)::smallint) AS flags,
        min(x.timeout_ms) AS timeout_ms, int8range(min(x.task), max(x.task), '[]') AS span
    FROM x GROUP BY (x.rn - 1) / 256),
b AS (
    INSERT INTO $schema$.lease(key, started_at, deadline, session, ids, secrets, flags)
    SELECT ($6::bigint[])[c.no], n.t, n.t + c.timeout_ms * interval '1 millisecond', $1::uuid, c.ids, c.secrets, c.flags FROM c CROSS JOIN n),
a AS (
    INSERT INTO $schema$.audit(part, seq, at, tenant, event, from_state, to_state, attempt, generation, session, actor, span, ids)
    SELECT $schema$.day_(n.t), nextval('$schema$.audit_seq') + 512, n.t, $11::bigint, 1, 0, 1, 1, 1, $1::uuid, 'worker', c.span, c.ids
    FROM c CROSS JOIN n)
-- First a row of what is said once, then the tasks.
SELECT n.t, o.live, o.single AND (SELECT plain FROM f) AS decided,
    CASE WHEN (SELECT count(*) FROM x) < $5::int THEN (
        SELECT nullif(r.due, 'infinity') FROM $schema$.later r WHERE r.lane = $8::int ORDER BY r.due LIMIT 1) END AS next_due,
    NULL::bigint AS task, NULL::bigint AS pos, NULL::int AS flags, NULL::bigint AS rn, NULL::text AS input, NULL::bigint AS parent, NULL::int AS policy,
    NULL::bigint AS timeout_ms
FROM n CROSS JOIN o
UNION ALL SELECT NULL, NULL, NULL, NULL, x.task, x.pos, x.flags, x.rn, x.input, x.parent, x.policy, x.timeout_ms FROM x
