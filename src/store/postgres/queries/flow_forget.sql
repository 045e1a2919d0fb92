-- $1 tasks that are gone; $2 tasks that are kept, $3 when to look at them again
WITH g AS (DELETE FROM $schema$.flow_signal WHERE task = ANY ($1::bigint[])),
s AS (DELETE FROM $schema$.flow_step WHERE task = ANY ($1::bigint[])),
k AS (UPDATE $schema$.flow f SET look_at = u.at FROM unnest($2::bigint[], $3::timestamptz[]) u(task, at) WHERE f.task = u.task AND f.task = ANY ($2::bigint[]))
DELETE FROM $schema$.flow WHERE task = ANY ($1::bigint[])
