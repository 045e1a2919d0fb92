-- The claimer: $1 session, $2 queues (empty = all), $3 types, $4 suspects; $5 limit, $6 keys (one per 256 tasks), $7 secrets
-- (one per task), $8/$9 lanes and the positions below which they were found empty. Of a lane $5 + 500 tasks are looked at: if
-- so many at its head are over their start-by deadline, the next look begins behind them.
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
s AS MATERIALIZED (
    SELECT z.id, z.node FROM $schema$.session z
    WHERE z.id = $1::uuid AND $passes session$ FOR KEY SHARE),
-- Whether something ready needs more than its turn: then nothing is taken here, and a plan has to be made.
y AS MATERIALIZED (
    SELECT EXISTS (
        SELECT FROM s CROSS JOIN $schema$.lane l JOIN $schema$.queue q ON q.id = l.queue
        -- In this order: the last passes over all that was taken from the head of the lane and is not cleaned away yet.
        WHERE $passes lane$ AND $passes alone$ AND (l.suspect OR NOT $4::boolean)
            AND CASE WHEN (l.placement <> '' OR (SELECT EXISTS (SELECT FROM $schema$.queue_order)) OR EXISTS (
                SELECT FROM $schema$.resource e
                WHERE e.matches IS NOT NULL AND ('queue:' || lower(q.name) LIKE e.matches OR 'type:' || lower(l.type) LIKE e.matches)))
                THEN EXISTS (SELECT FROM $schema$.ready r WHERE r.lane = l.id OFFSET 0) END) AS special),
m AS MATERIALIZED (
    SELECT k.id, max(k.priority) AS priority, max(k.tenant) AS tenant, max(k.mark) AS mark FROM (
        SELECT l.id, l.priority, l.tenant, 0::bigint AS mark
        FROM s CROSS JOIN $schema$.lane l JOIN $schema$.queue q ON q.id = l.queue
        WHERE $passes lane$ AND $passes alone$ AND (l.suspect OR NOT $4::boolean) AND NOT (SELECT special FROM y)
        UNION ALL SELECT lane, NULL, NULL, mark FROM unnest($8::int[], $9::bigint[]) u(lane, mark)) k
    GROUP BY k.id HAVING max(k.priority) IS NOT NULL),
h AS MATERIALIZED (
    SELECT priority, array_agg(id) AS lanes, array_agg(mark) AS marks FROM m GROUP BY priority ORDER BY priority DESC),
c AS MATERIALIZED (
    -- How many of the first $5 wait in each lane. Read without locks: what is not taken must not be kept from others. Of a
    -- single lane all may, and nothing is counted: where its positions have no gaps they are among the next numbers.
    SELECT i.lane, f.pos - 1 AS mark, $5::bigint AS n, f.pos + $5::int + 500 AS last FROM h CROSS JOIN LATERAL (SELECT h.lanes[1] AS lane, h.marks[1] AS mark) i
        CROSS JOIN LATERAL (SELECT r.pos FROM $schema$.ready r WHERE r.lane = i.lane AND r.pos > i.mark ORDER BY r.pos LIMIT 1) f
    WHERE (SELECT count(*) FROM m) = 1
    UNION ALL
    SELECT f.lane, f.mark, count(*) AS n, 9223372036854775807 AS last FROM (
        SELECT b.lane, b.mark FROM h CROSS JOIN LATERAL (
            SELECT l.lane, l.mark FROM unnest(h.lanes, h.marks) l(lane, mark) CROSS JOIN LATERAL (
                SELECT r.pos FROM (
                    SELECT r.pos, r.task, r.flags FROM $schema$.ready r
                    WHERE r.lane = l.lane AND r.pos > l.mark ORDER BY r.pos LIMIT $5::int + 500) r
                WHERE $passes task$
                ORDER BY r.pos LIMIT $5::int) q
            ORDER BY q.pos LIMIT $5::int) b
        LIMIT $5::int) f
    WHERE (SELECT count(*) FROM m) > 1
    GROUP BY f.lane, f.mark),
p AS MATERIALIZED (
    SELECT q.tid FROM c CROSS JOIN LATERAL (
        SELECT r.ctid AS tid FROM $schema$.ready r
        WHERE r.lane = c.lane AND r.pos > c.mark AND r.pos <= c.last
            AND $passes task$
        ORDER BY r.pos LIMIT c.n FOR UPDATE SKIP LOCKED) q),
w AS MATERIALIZED (
    -- Where others are taking all that a lane holds, or a single lane has gaps: as many from wherever something is left, by
    -- priority; of a single lane, behind what was looked at. Rows are locked one by one as they are asked for, so no more than
    -- these.
    SELECT q.tid FROM h CROSS JOIN LATERAL unnest(h.lanes, h.marks) l(lane, mark) CROSS JOIN LATERAL (
        SELECT CASE WHEN (SELECT count(*) FROM m) = 1 THEN (SELECT max(c.last) FROM c) ELSE l.mark END AS mark) b CROSS JOIN LATERAL (
        SELECT max(f.pos) AS last FROM (
            SELECT r.pos FROM $schema$.ready r WHERE r.lane = l.lane AND r.pos > b.mark ORDER BY r.pos LIMIT $5::int + 500) f) t CROSS JOIN LATERAL (
        SELECT r.ctid AS tid FROM $schema$.ready r
        WHERE r.lane = l.lane AND r.pos > b.mark AND r.pos <= t.last AND NOT (r.ctid IN (SELECT tid FROM p))
            AND $passes task$
        ORDER BY r.pos LIMIT $5::int FOR UPDATE SKIP LOCKED) q
    LIMIT $5::int - (SELECT count(*) FROM p)),
g AS (
    DELETE FROM $schema$.ready WHERE ctid = ANY (ARRAY(SELECT tid FROM p UNION ALL SELECT tid FROM w)) RETURNING task, lane, pos, flags),
-- Numbered before anything wide is joined to it.
r AS (SELECT g.task, g.lane, g.pos, g.flags | ($4::boolean)::int * 64 AS flags, row_number() OVER (ORDER BY g.pos) AS rn FROM g),
$leased$,
-- Where something came of too little, the lanes that go on behind what was looked at.
k AS MATERIALIZED (
    SELECT array_agg(m.id) AS lanes, array_agg(f.pos) AS positions FROM m CROSS JOIN LATERAL (
        SELECT r.pos FROM $schema$.ready r WHERE r.lane = m.id AND r.pos > m.mark ORDER BY r.pos OFFSET $5::int + 499 LIMIT 1) f
    WHERE (SELECT count(*) FROM x) < $5::int)
-- First a row of what is said once, then the tasks.
SELECT n.t, d.lanes, d.queues, d.types, d.tenants, d.priorities, o.policies, o.retries,
    NULL::bigint AS task, NULL::int AS lane, NULL::bigint AS pos, NULL::int AS flags, NULL::bigint AS rn, NULL::text AS input, NULL::bigint AS parent,
    NULL::int AS policy, NULL::bigint AS timeout_ms, NULL::int AS attempt, NULL::int AS claim_no, NULL::int AS generation, NULL::int AS crash_count,
    NULL::text AS order_key, NULL::smallint AS on_failed,
    EXISTS (SELECT FROM s) AS session_live,
    EXISTS (SELECT FROM $schema$.lane l JOIN $schema$.queue q ON q.id = l.queue
            WHERE l.suspect AND $passes lane$
                AND EXISTS (SELECT FROM $schema$.ready r WHERE r.lane = l.id OFFSET 0)) AS suspects_waiting,
    CASE WHEN (SELECT count(*) FROM x) < $5::int THEN (
        SELECT nullif(min(w.due), 'infinity') FROM $schema$.lane l JOIN $schema$.queue q ON q.id = l.queue CROSS JOIN LATERAL (
            SELECT r.due FROM $schema$.later r WHERE r.lane = l.id AND NOT $passes due$ ORDER BY r.due LIMIT 1) w
        WHERE $passes lane$ AND $passes alone$) END AS next_due,
    k.lanes, k.positions, (SELECT special FROM y) AS special
FROM n CROSS JOIN d CROSS JOIN o CROSS JOIN k
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, x.task, x.lane, x.pos, x.flags, x.rn, x.input, x.parent, x.policy, x.timeout_ms,
    x.attempt, x.claim_no, x.generation, x.crash_count, x.order_key, x.on_failed, NULL, NULL, NULL, NULL, NULL, NULL
FROM x
