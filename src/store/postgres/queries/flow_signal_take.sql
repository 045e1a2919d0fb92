-- $1 task, $2 no, $3 step
UPDATE $schema$.flow_signal SET step = $3::int WHERE task = $1::bigint AND no = $2::int
