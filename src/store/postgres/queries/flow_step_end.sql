-- $1 task, $2 no, $3 state, $4 result, $5 ended
UPDATE $schema$.flow_step SET state = $3::int, result = $4::text, ended_at = $5::timestamptz WHERE task = $1::bigint AND no = $2::int
