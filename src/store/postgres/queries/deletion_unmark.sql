-- $1 tenant, $2 kind, $3 key
DELETE FROM $schema$.deletion d WHERE d.tenant = $1::bigint AND d.kind = $2::text AND d.key = $3::text AND d.state = 0
RETURNING d.id, d.tenant, d.kind, d.key, d.initiator, d.steps, d.state::int, d.marked_at, d.delete_at, d.task
