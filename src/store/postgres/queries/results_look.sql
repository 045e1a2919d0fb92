-- $1 limit
SELECT r.task FROM $schema$.task_result r WHERE r.look_at <= (SELECT $schema$.now_()) ORDER BY r.look_at LIMIT $1::int FOR UPDATE SKIP LOCKED
