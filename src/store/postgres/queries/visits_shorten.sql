-- Those that follow the schedule's own interval, which has become shorter; its row is locked. $1 schedule, $2 now, $3 after_ms, $4 before_ms
UPDATE $schema$.visit SET next_at = $2::timestamptz + (next_at - $2::timestamptz) * ($3::bigint::float8 / $4::bigint::float8)
WHERE schedule = $1::bigint AND every_ms IS NULL AND next_at > $2::timestamptz
