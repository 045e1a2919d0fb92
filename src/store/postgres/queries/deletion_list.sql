-- Behind these. $1 tenant, $2 kind, $3 key; $4 limit
SELECT d.id, d.tenant, d.kind, d.key, d.initiator, d.steps, d.state::int, d.marked_at, d.delete_at, d.task
FROM $schema$.deletion d WHERE (d.tenant, d.kind, d.key) > ($1::bigint, $2::text, $3::text)
ORDER BY d.tenant, d.kind, d.key LIMIT $4::int
