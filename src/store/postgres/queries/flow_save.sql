-- $1 task, $2 steps, $3 bytes, $4 signals, $5 waiting, $6 awaits, $7 came
UPDATE $schema$.flow SET steps = $2::int, bytes = $3::bigint, signals = $4::int, waiting = $5::int, awaits = $6::text, came = $7::bool
WHERE task = $1::bigint
