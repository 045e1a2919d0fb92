-- $1 id, $2 task, $3 kept_ms
UPDATE $schema$.deletion d SET state = 2, task = $2::bigint, due_at = $schema$.now_() + $3::bigint * interval '1 millisecond'
WHERE d.id = $1::bigint
