-- $1 tenant, $2 name, $3 version, $4 definition, $5 by whom, $6 types that its joins wait for,
-- $7 names of the joins whose keys fire once
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
r AS (UPDATE $schema$.workflow_revision SET revision = revision + 1),
d AS (DELETE FROM $schema$.workflow_member m WHERE m.tenant = $1::bigint AND m.workflow = $2::text AND m.type <> ALL ($6::text[])),
o AS (DELETE FROM $schema$.join_once x WHERE x.tenant = $1::bigint AND x.workflow = $2::text AND x.name <> ALL ($7::text[])),
i AS (
    INSERT INTO $schema$.workflow_member(tenant, type, workflow) SELECT $1::bigint, u.type, $2::text FROM unnest($6::text[]) u(type)
    ON CONFLICT (tenant, type, workflow) DO NOTHING)
INSERT INTO $schema$.workflow AS w (tenant, name, version, definition, updated_at, updated_by)
SELECT $1::bigint, $2::text, $3::int, $4::text, n.t, $5::text FROM n
ON CONFLICT (tenant, name) DO UPDATE SET version = excluded.version, definition = excluded.definition, updated_at = excluded.updated_at,
    updated_by = excluded.updated_by
RETURNING w.updated_at
