-- After a pause: those that passed move to their next instant, each in its place; the schedule's row is locked.
-- $1 schedule, $2 now, $3 the schedule's every_ms
UPDATE $schema$.visit v SET next_at = v.next_at
    + (floor(extract(epoch FROM $2::timestamptz - v.next_at) * 1000 / coalesce(v.every_ms, $3::bigint)) + 1)::bigint
        * coalesce(v.every_ms, $3::bigint) * interval '1 millisecond'
WHERE v.schedule = $1::bigint AND v.next_at <= $2::timestamptz
