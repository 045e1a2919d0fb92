-- $1 name, $2 make it, $3 actor, $4 paused; then each with whether it is to change: $5 $6 cap, $7 $8 keep_complete_ms,
-- $9 $10 keep_dead_ms, $11 $12 keep_cancelled_ms
SELECT q.name, q.paused, q.cap, q.keep_complete_ms, q.keep_dead_ms, q.keep_cancelled_ms, q.changed_by, q.changed_at
FROM $schema$.change_queue_($1::text, $2::boolean, $3::text, $4::boolean, $5::boolean, $6::bigint, $7::boolean, $8::bigint,
    $9::boolean, $10::bigint, $11::boolean, $12::bigint) q
