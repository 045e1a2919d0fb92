-- $1 task
SELECT r.total, r.errors, r.checkpoint, r.checkpoint_by, r.checkpoint_at FROM $schema$.task_result r WHERE r.task = $1::bigint
