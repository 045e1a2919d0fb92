-- $1 before, $2 tenant or NULL, $3 limit
SELECT f.task, f.tenant, f.steps, f.bytes, f.signals, f.waiting, f.awaits, f.came, f.started_at
FROM $schema$.flow f WHERE f.task < $1::bigint AND ($2::bigint IS NULL OR f.tenant = $2::bigint)
ORDER BY f.task DESC LIMIT $3::int
