-- $1 tenant, $2 name
WITH w AS (DELETE FROM $schema$.workflow x WHERE x.tenant = $1::bigint AND x.name = $2::text RETURNING 1),
o AS (DELETE FROM $schema$.join_once x WHERE x.tenant = $1::bigint AND x.workflow = $2::text),
m AS (DELETE FROM $schema$.workflow_member x WHERE x.tenant = $1::bigint AND x.workflow = $2::text),
r AS (UPDATE $schema$.workflow_revision SET revision = revision + 1 WHERE EXISTS (SELECT FROM w))
SELECT EXISTS (SELECT FROM w)
