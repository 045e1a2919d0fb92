-- $1 task
SELECT f.task, f.tenant, f.steps, f.bytes, f.signals, f.waiting, f.awaits, f.came, f.started_at
FROM $schema$.flow f WHERE f.task = $1::bigint
