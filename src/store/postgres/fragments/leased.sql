-- What both ways of claiming do with the rows g that they took, and r, their numbers: leases, audit entries, and the names for the answer.
past_ AS MATERIALIZED (SELECT f.* FROM $schema$.past f WHERE f.task = ANY (ARRAY(SELECT task FROM g WHERE (flags & 1) <> 0))),
ordered_ AS MATERIALIZED (SELECT f.* FROM $schema$.ordered f WHERE f.task = ANY (ARRAY(SELECT task FROM g WHERE (flags & 4096) <> 0))),
lane_ AS MATERIALIZED (
    SELECT l.id, l.type, l.tenant, l.priority, q.name AS queue FROM $schema$.lane l JOIN $schema$.queue q ON q.id = l.queue
    WHERE l.id = ANY (ARRAY(SELECT DISTINCT lane FROM g))),
x AS MATERIALIZED (
    SELECT r.task, r.lane, r.pos, r.flags, r.rn,
        v.input, v.parent, v.policy, v.timeout_ms,
        y.attempt + 1 AS attempt, y.claim_no + 1 AS claim_no, y.generation, y.crash_count, y.state AS from_state, k.key AS order_key, k.on_failed
    -- Full joins, because those are never done by comparing each with each, whatever the planner believes of how many rows
    -- there are. Each row of r has one of v.
    FROM r JOIN $row live v r.task$ FULL JOIN past_ y ON y.task = r.task FULL JOIN ordered_ k ON k.task = r.task
    WHERE coalesce(r.task, 0) <> 0),
b AS (
    INSERT INTO $schema$.lease(key, started_at, deadline, session, ids, secrets, flags)
    SELECT ($6::bigint[])[(x.rn - 1) / 256 + 1], n.t, n.t + min(x.timeout_ms) * interval '1 millisecond', $1::uuid,
        array_agg(x.task), array_agg(($7::bigint[])[x.rn]), array_agg(x.flags::smallint)
    FROM x, n GROUP BY (x.rn - 1) / 256, n.t),
e AS MATERIALIZED (
    SELECT l.tenant, coalesce(x.attempt, 1) AS attempt, coalesce(x.generation, 1) AS generation, coalesce(x.from_state, 0) AS from_state, (x.rn - 1) / 256 AS chunk,
        array_agg(x.task) AS ids, min(x.task) AS low, max(x.task) AS high
    FROM x FULL JOIN lane_ l ON l.id = x.lane WHERE coalesce(x.task, 0) <> 0 GROUP BY 1, 2, 3, 4, 5),
f AS MATERIALIZED (SELECT e.*, nextval('$schema$.audit_seq') AS seq FROM e),
a AS (
    -- A retried task first becomes OPEN again; both entries of a task come from one block of numbers.
    INSERT INTO $schema$.audit(part, seq, at, tenant, event, from_state, to_state, attempt, generation, session, actor, span, ids)
    SELECT $schema$.day_(n.t), f.seq, n.t, f.tenant, 2, 5, 0, f.attempt - 1, f.generation, $1::uuid, 'worker', int8range(f.low, f.high, '[]'), f.ids
    FROM f, n WHERE f.from_state = 5
    UNION ALL
    SELECT $schema$.day_(n.t), f.seq + 512, n.t, f.tenant, 1, 0, 1, f.attempt, f.generation, $1::uuid, 'worker', int8range(f.low, f.high, '[]'), f.ids
    FROM f, n),
-- What the numbers in the answer stand for, once: a caller that has to ask again after the commit may not get to know.
d AS MATERIALIZED (
    SELECT array_agg(l.id) AS lanes, array_agg(l.queue) AS queues, array_agg(l.type) AS types, array_agg(l.tenant) AS tenants,
        array_agg(l.priority) AS priorities
    FROM lane_ l),
o AS MATERIALIZED (
    SELECT array_agg(z.id) AS policies, array_agg(z.retry) AS retries
    FROM (SELECT DISTINCT x.policy FROM x) y JOIN $schema$.policy z ON z.id = y.policy)