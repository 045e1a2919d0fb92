-- The row of the task's results, made if need be, and locked: writers of one token come one after the other.
-- $1 task, $2 ms until it is looked at
INSERT INTO $schema$.task_result AS r (task, total, errors, look_at)
VALUES ($1::bigint, 0, 0, $schema$.now_() + $2::bigint * interval '1 millisecond')
ON CONFLICT (task) DO UPDATE SET total = r.total
