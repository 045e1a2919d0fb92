-- Entries in the order given; equal ones share a row.
-- $1 task, $2 tenant, $3 event, $4 from_state, $5 to_state, $6 attempt, $7 generation, $8 session, $9 actor, $10 reason
INSERT INTO $schema$.audit(part, seq, at, tenant, event, from_state, to_state, attempt, generation, session, actor, reason, span, ids)
SELECT $schema$.day_(n.t), nextval('$schema$.audit_seq'), n.t, g.tenant, g.event, g.from_state, g.to_state, g.attempt, g.generation, g.session,
    g.actor, g.reason, g.span, g.ids
FROM (SELECT $schema$.now_() AS t OFFSET 0) n CROSS JOIN (
    SELECT tenant, event, from_state, to_state, attempt, generation, session, actor, reason, int8range(min(task), max(task), '[]') AS span,
        array_agg(task ORDER BY ord) AS ids, min(ord) AS ord
    FROM (
        SELECT u.*, (row_number() OVER (PARTITION BY tenant, event, from_state, to_state, attempt, generation, session, actor, reason ORDER BY ord) - 1) / 500 AS chunk
        FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::smallint[], $5::smallint[], $6::int[], $7::int[], $8::uuid[], $9::text[], $10::text[])
            WITH ORDINALITY u(task, tenant, event, from_state, to_state, attempt, generation, session, actor, reason, ord)) c
    GROUP BY tenant, event, from_state, to_state, attempt, generation, session, actor, reason, chunk
    ORDER BY min(ord)) g
