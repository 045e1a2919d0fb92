-- Tasks without keys into queues without caps. All columns of one task share a position in the arrays.
-- $1 id, $2 lane, $3 policy, $4 flags, $5 explicit, $6 timeout_ms, $7 parent, $8 delay_ms, $9 run_at, $10 start_by,
-- $11 tags (a JSON array each), $12 unique_key, $13 idem_key, $14 debounce_key, $15 input,
-- $16/$17 types and the revisions of their defaults that were used, $18 whether caps were already looked at;
-- the audit entries: $19 tenant, $20 actor, $21/$22 lowest and highest id, $23/$24 first and last place of its ids in $25 (NULL: in $1).
-- Answers whether a revision was outdated and whether a queue has a cap: then nothing was stored; how many were stored, and
-- which of them are for later.
-- The xid is assigned before a position is drawn: whoever sees a position as taken can see by whom.
WITH c AS MATERIALIZED (
    SELECT EXISTS (SELECT FROM unnest($16::text[], $17::int[]) k(name, revision) LEFT JOIN $schema$.task_type d ON d.name = k.name
                   WHERE coalesce(d.revision, 0) <> k.revision) AS outdated,
        NOT $18::boolean AND EXISTS (SELECT FROM $schema$.lane l JOIN $schema$.queue q ON q.id = l.queue
                   WHERE l.id = ANY ($2::int[]) AND q.cap IS NOT NULL) AS capped),
n AS MATERIALIZED (SELECT $schema$.now_() AS t, pg_current_xact_id() AS xid FROM c WHERE NOT outdated AND NOT capped),
-- Numbers stand in every task and are looked up by their place; each of the others is a list of its own to unnest, which is
-- not sent when it holds nothing. Their rows come in order, as there is nothing to join them with.
v AS (
    INSERT INTO $schema$.live(id, pos, created_at, due_at, lane, policy, flags, explicit, timeout_ms, parent, start_by, tags, unique_key, idem_key, debounce_key, input)
    SELECT ($1::bigint[])[u.ord], nextval('$schema$.pos_seq'), n.t,
        CASE WHEN u.run_at IS NOT NULL THEN u.run_at WHEN u.delay_ms IS NULL THEN n.t ELSE n.t + u.delay_ms * interval '1 millisecond' END,
        ($2::int[])[u.ord], ($3::int[])[u.ord], ($4::smallint[])[u.ord], ($5::smallint[])[u.ord], u.timeout_ms, u.parent, u.start_by,
        CASE WHEN u.tags IS NOT NULL THEN ARRAY(SELECT jsonb_array_elements_text(u.tags::jsonb)) END, u.unique_key, u.idem_key, u.debounce_key, u.input
    FROM n CROSS JOIN unnest($15::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::timestamptz[], $10::timestamptz[], $11::text[], $12::text[],
        $13::text[], $14::text[])
        WITH ORDINALITY u(input, timeout_ms, parent, delay_ms, run_at, start_by, tags, unique_key, idem_key, debounce_key, ord)
    WHERE n.xid IS NOT NULL
    RETURNING id, pos, lane, flags, due_at, created_at),
r AS (INSERT INTO $schema$.ready(lane, pos, task, flags) SELECT lane, pos, id, flags FROM v WHERE due_at <= created_at),
w AS (INSERT INTO $schema$.later(due, task, lane, flags) SELECT due_at, id, lane, flags FROM v WHERE due_at > created_at),
a AS (
    INSERT INTO $schema$.audit(part, seq, at, tenant, event, from_state, to_state, attempt, generation, actor, span, ids)
    SELECT $schema$.day_(n.t), nextval('$schema$.audit_seq'), n.t, g.tenant, 0, NULL, 0, 0, 1, g.actor, int8range(g.low, g.high, '[]'),
        (coalesce($25::bigint[], $1::bigint[]))[g.first:g.last]
    FROM n CROSS JOIN unnest($19::bigint[], $20::text[], $21::bigint[], $22::bigint[], $23::int[], $24::int[]) g(tenant, actor, low, high, first, last))
SELECT c.outdated, c.capped, (SELECT count(*) FROM v), (SELECT array_agg(id) FROM v WHERE due_at > created_at) FROM c
