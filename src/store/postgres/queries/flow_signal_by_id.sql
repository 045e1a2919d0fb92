-- $1 task, $2 id
SELECT g.no, g.name, g.id, g.payload, g.at, g.step FROM $schema$.flow_signal g WHERE g.task = $1::bigint AND g.id = $2::text
