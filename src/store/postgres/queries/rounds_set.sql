-- $1 tenant, $2 workflow, $3 name, $4 key, $5 generation, $6 mask, $7 state, $8 task, $9 message, $10 created_at, $11 expires_at, $12 ended_at,
-- $13 whether its key is remembered
WITH u AS MATERIALIZED (
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::int[], $6::bigint[], $7::smallint[], $8::bigint[], $9::text[],
        $10::timestamptz[], $11::timestamptz[], $12::timestamptz[], $13::boolean[])
        x(tenant, workflow, name, key, generation, mask, state, task, message, created_at, expires_at, ended_at, once)),
o AS (
    INSERT INTO $schema$.join_once(tenant, workflow, name, key, generation)
    SELECT u.tenant, u.workflow, u.name, u.key, u.generation FROM u WHERE u.once
    ON CONFLICT (tenant, workflow, name, key) DO UPDATE SET generation = excluded.generation)
INSERT INTO $schema$.join_round AS r (tenant, workflow, name, key, generation, mask, state, task, message, created_at, expires_at, ended_at)
SELECT u.tenant, u.workflow, u.name, u.key, u.generation, u.mask, u.state, u.task, u.message, u.created_at, u.expires_at, u.ended_at FROM u
ON CONFLICT (tenant, workflow, name, key, generation) DO UPDATE SET mask = excluded.mask, state = excluded.state, task = excluded.task,
    message = excluded.message, ended_at = excluded.ended_at
RETURNING r.id, r.tenant, r.workflow, r.name, r.key, r.generation
