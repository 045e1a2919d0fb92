-- Takes what was planned: like claim.sql (fragments/leased.sql), but of the given places. What others have taken meanwhile is missing in the answer.
-- $1 session, $2 queues, $3 types, $4 suspects (the claimer), $5 unused, $6 keys (one per 256 tasks), $7 secrets (one per task),
-- $8/$9 lanes and positions, lane by lane, $10 numbers: a lease is of 256 of them; $11/$12/$13 the lanes, and where theirs begin and end;
-- $14/$15 leases whose tasks share what so many of them hold; $16/$17/$18 lanes, resources and units: what each that holds something has
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
p AS MATERIALIZED (
    -- A full join, as in fragments/leased.sql.
    SELECT q.tid, u.rn FROM unnest($11::int[], $12::int[], $13::int[]) l(lane, low, high) CROSS JOIN LATERAL (
        SELECT r.ctid AS tid, r.lane, r.pos FROM $schema$.ready r
        WHERE r.lane = l.lane AND r.pos = ANY (($9::bigint[])[l.low:l.high]) AND $passes task$ FOR UPDATE SKIP LOCKED) q
    FULL JOIN unnest($8::int[], $9::bigint[], $10::bigint[]) u(lane, pos, rn) ON u.lane = q.lane AND u.pos = q.pos
    WHERE coalesce(q.pos, 0) <> 0),
g AS (
    DELETE FROM $schema$.ready z USING p WHERE z.ctid = p.tid AND z.ctid = ANY (ARRAY(SELECT tid FROM p))
    RETURNING z.task, z.lane, z.pos, z.flags, p.rn),
-- Of those that share, the last ones hold.
i AS MATERIALIZED (
    SELECT g.*, CASE WHEN s.seats IS NULL THEN g.lane = ANY ($16::int[]) ELSE row_number() OVER (PARTITION BY (g.rn - 1) / 256 ORDER BY g.rn DESC) <= s.seats END AS holds,
        s.seats IS NOT NULL AS shares
    FROM g LEFT JOIN unnest($14::bigint[], $15::int[]) s(lease, seats) ON s.lease = (g.rn - 1) / 256),
r AS (
    SELECT i.task, i.lane, i.pos, i.rn, (i.flags & ~8192) | ($4::boolean)::int * 64 | CASE WHEN i.holds THEN 2048 WHEN i.shares THEN 8192 ELSE 0 END AS flags FROM i),
slots_ AS (
    INSERT INTO $schema$.slot(task, resource, units) SELECT i.task, k.resource, k.units
    FROM i JOIN unnest($16::int[], $17::int[], $18::int[]) k(lane, resource, units) ON k.lane = i.lane WHERE i.holds),
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
