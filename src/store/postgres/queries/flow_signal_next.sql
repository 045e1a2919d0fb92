-- $1 task, $2 name
SELECT g.no, g.name, g.id, g.payload, g.at, g.step FROM $schema$.flow_signal g
WHERE g.task = $1::bigint AND g.name = $2::text AND g.step IS NULL ORDER BY g.no LIMIT 1
