-- $1 task
SELECT g.no, g.name, g.id, g.payload, g.at, g.step FROM $schema$.flow_signal g WHERE g.task = $1::bigint ORDER BY g.no
