-- Which of the events are new: those whose source and id nobody has used. In one order for all, as each may have to wait
-- for somebody who is publishing the same one.
-- $1 tenant, $2 source, $3 id, $4 type, $5 data, $6 time, $7 cause, $8 depth, $9 state, $10 reason
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
x AS MATERIALIZED (
    SELECT u.*, nextval('$schema$.published_no') AS no
    FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::bigint[], $8::int[], $9::smallint[], $10::text[])
        WITH ORDINALITY u(tenant, source, id, type, data, time, cause, depth, state, reason, ord)),
i AS (
    INSERT INTO $schema$.published(no, tenant, source, id, type, data, time, cause, depth, state, reason, tries, published_at, due_at, processed_at)
    SELECT x.no, x.tenant, x.source, x.id, x.type, x.data, coalesce(x.time, n.t), x.cause, x.depth, x.state, x.reason, 0, n.t, n.t,
        CASE WHEN x.state <> 0 THEN n.t END
    FROM x, n ORDER BY x.tenant, x.source, x.id, x.ord
    ON CONFLICT (tenant, source, id) WHERE id IS NOT NULL DO NOTHING RETURNING no)
SELECT x.no, EXISTS (SELECT FROM i WHERE i.no = x.no) FROM x ORDER BY x.ord
