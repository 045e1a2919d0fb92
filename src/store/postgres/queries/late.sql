-- The first task that is ready, lane by lane, whoever may be at it. $1 lanes, $2/$3 above which and up to which position
SELECT u.lane, f.pos FROM unnest($1::int[], $2::bigint[], $3::bigint[]) u(lane, low, high) CROSS JOIN LATERAL (
    SELECT r.pos FROM $schema$.ready r WHERE r.lane = u.lane AND r.pos > u.low AND r.pos <= u.high ORDER BY r.pos LIMIT 1) f
