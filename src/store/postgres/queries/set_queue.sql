-- $1 name, $2 paused, $3 cap, $4 keep_complete_ms, $5 keep_dead_ms, $6 keep_cancelled_ms
SELECT $schema$.set_queue_($1::text, $2::boolean, $3::bigint, $4::bigint, $5::bigint, $6::bigint)
