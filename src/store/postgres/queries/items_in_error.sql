-- $1 tasks
SELECT r.task, r.total, r.errors FROM $schema$.task_result r WHERE r.task = ANY ($1::bigint[]) AND r.errors > 0
