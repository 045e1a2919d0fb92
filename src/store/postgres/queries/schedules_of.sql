-- $1 ids
SELECT s.id, s.spec, s.revision, s.turn, s.paused, s.created_at, s.considered_at, s.next_at, s.queued_at, s.last_instant, s.last_task, s.running,
    s.changed_by, s.changed_at, s.name
FROM $schema$.schedule s WHERE s.id = ANY ($1::bigint[]) ORDER BY s.id
