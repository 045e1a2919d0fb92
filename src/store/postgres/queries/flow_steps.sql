-- $1 task
SELECT s.no, s.name, s.occurrence, s.kind, s.state, s.about, s.hash, s.result, s.child, s.due_at, s.late, s.at, s.ended_at
FROM $schema$.flow_step s WHERE s.task = $1::bigint ORDER BY s.no
