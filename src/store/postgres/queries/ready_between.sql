-- How many are ready in a lane between two places. $1 lane, $2 after this place, $3 before this place
SELECT count(*) FROM $schema$.ready r WHERE r.lane = $1::int AND r.pos > $2::bigint AND r.pos < $3::bigint
