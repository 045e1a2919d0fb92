-- Takes what was planned: like claim.sql (fragments/leased.sql), but of the given places. What others have taken meanwhile is missing in the answer.
-- $1 session, $2 queues, $3 types, $4 suspects (the claimer), $5 unused, $6 keys (one per 256 tasks), $7 secrets (one per task),
-- $8/$9 lanes and positions, $10 whether it will hold resources
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
p AS MATERIALIZED (
    SELECT q.tid, u.holds FROM unnest($8::int[], $9::bigint[], $10::boolean[]) u(lane, pos, holds) CROSS JOIN LATERAL (
        SELECT r.ctid AS tid FROM $schema$.ready r WHERE r.lane = u.lane AND r.pos = u.pos AND $passes task$ FOR UPDATE SKIP LOCKED) q),
g AS (
    DELETE FROM $schema$.ready z USING p WHERE z.ctid = p.tid AND z.ctid = ANY (ARRAY(SELECT tid FROM p))
    RETURNING z.task, z.lane, z.pos, z.flags | p.holds::int * 2048 AS flags),
$leased$
SELECT n.t, d.lanes, d.queues, d.types, d.tenants, d.priorities, o.policies, o.retries,
    NULL::bigint AS task, NULL::int AS lane, NULL::bigint AS pos, NULL::int AS flags, NULL::bigint AS rn, NULL::text AS input, NULL::bigint AS parent,
    NULL::int AS policy, NULL::bigint AS timeout_ms, NULL::int AS attempt, NULL::int AS claim_no, NULL::int AS generation, NULL::int AS crash_count,
    NULL::text AS order_key, NULL::smallint AS on_failed
FROM n CROSS JOIN d CROSS JOIN o
WHERE ($2::text[] IS NOT NULL OR $3::text[] IS NOT NULL OR $5::int IS NOT NULL)
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, x.task, x.lane, x.pos, x.flags, x.rn, x.input, x.parent, x.policy, x.timeout_ms,
    x.attempt, x.claim_no, x.generation, x.crash_count, x.order_key, x.on_failed
FROM x
