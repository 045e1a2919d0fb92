-- Tasks without keys into queues without caps. All columns of one task share a position in the arrays.
-- $1 id, $2 lane, $3 policy, $4 flags, $5 explicit, $6 timeout_ms, $7 parent, $8 delay_ms, $9 run_at, $10 start_by,
-- $11 tags (a JSON array each), $12 unique_key, $13 idem_key, $14 debounce_key, $15 input, $16 actor,
-- $17/$18 types and the revisions of their defaults that were used, $19 whether caps were already looked at.
-- Answers first whether a revision was outdated and whether a queue has a cap: then nothing was stored.
-- The xid is assigned before a position is drawn: whoever sees a position as taken can see by whom.
WITH c AS MATERIALIZED (
    SELECT EXISTS (SELECT FROM unnest($17::text[], $18::int[]) k(name, revision) LEFT JOIN $schema$.task_type d ON d.name = k.name
                   WHERE coalesce(d.revision, 0) <> k.revision) AS outdated,
        NOT $19::boolean AND EXISTS (SELECT FROM $schema$.lane l JOIN $schema$.queue q ON q.id = l.queue
                   WHERE l.id = ANY ($2::int[]) AND q.cap IS NOT NULL) AS capped),
n AS MATERIALIZED (SELECT $schema$.now_() AS t, pg_current_xact_id() AS xid FROM c WHERE NOT outdated AND NOT capped),
x AS MATERIALIZED (
    SELECT u.*, CASE WHEN u.run_at IS NOT NULL THEN u.run_at ELSE n.t + coalesce(u.delay_ms, 0) * interval '1 millisecond' END AS due_at,
        n.t
    FROM n CROSS JOIN unnest($1::bigint[], $2::int[], $3::int[], $4::smallint[], $5::smallint[], $6::bigint[], $7::bigint[], $8::bigint[],
        $9::timestamptz[], $10::timestamptz[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[])
        WITH ORDINALITY u(id, lane, policy, flags, explicit, timeout_ms, parent, delay_ms, run_at, start_by, tags, unique_key, idem_key,
            debounce_key, input, actor, ord)
    WHERE n.xid IS NOT NULL),
y AS MATERIALIZED (SELECT x.*, nextval('$schema$.pos_seq') AS pos, x.due_at <= x.t AS is_ready FROM (SELECT * FROM x ORDER BY ord) x),
v AS (
    INSERT INTO $schema$.live(id, pos, created_at, due_at, lane, policy, flags, explicit, timeout_ms, parent, start_by, tags, unique_key, idem_key, debounce_key, input)
    SELECT id, pos, t, due_at, lane, policy, flags, explicit, timeout_ms, parent, start_by,
        CASE WHEN tags IS NOT NULL THEN ARRAY(SELECT jsonb_array_elements_text(tags::jsonb)) END, unique_key, idem_key, debounce_key, input
    FROM y),
r AS (INSERT INTO $schema$.ready(lane, pos, task, flags) SELECT lane, pos, id, flags FROM y WHERE is_ready),
w AS (INSERT INTO $schema$.later(due, task, lane, flags) SELECT due_at, id, lane, flags FROM y WHERE NOT is_ready),
g AS (
    SELECT l.tenant, y.actor, (y.ord - 1) / 500 AS chunk, array_agg(y.id) AS ids, min(y.id) AS low, max(y.id) AS high
    FROM y JOIN $schema$.lane l ON l.id = y.lane GROUP BY 1, 2, 3),
a AS (
    INSERT INTO $schema$.audit(part, seq, at, tenant, event, from_state, to_state, attempt, generation, actor, span, ids)
    SELECT $schema$.day_(n.t), nextval('$schema$.audit_seq'), n.t, g.tenant, 0, NULL, 0, 0, 1, g.actor, int8range(g.low, g.high, '[]'), g.ids
    FROM g, n)
SELECT c.outdated, c.capped, y.id, y.is_ready FROM c LEFT JOIN y ON true ORDER BY y.ord
