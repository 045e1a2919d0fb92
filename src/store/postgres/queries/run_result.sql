-- What became of a run when it was not what was expected. $1 schedule, $2 instant, $3 entity, $4 task, $5 skipped
UPDATE $schema$.schedule_run SET task = $4::bigint, skipped = $5::text
WHERE schedule = $1::bigint AND instant = $2::timestamptz AND entity = $3::text
