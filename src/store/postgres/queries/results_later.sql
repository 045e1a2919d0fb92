-- $1 tasks that are kept, $2 when to look at them again
UPDATE $schema$.task_result r SET look_at = u.at FROM unnest($1::bigint[], $2::timestamptz[]) u(task, at)
WHERE r.task = u.task AND r.task = ANY ($1::bigint[])
