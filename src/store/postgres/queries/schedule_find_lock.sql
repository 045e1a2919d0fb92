-- $1 tenant, $2 name
SELECT s.id, s.spec, s.revision, s.turn, s.paused, s.created_at, s.considered_at, s.next_at, s.queued_at, s.last_instant, s.last_task, s.running,
    s.changed_by, s.changed_at, s.name
FROM $schema$.schedule s WHERE s.tenant = $1::bigint AND s.name = $2::text FOR UPDATE
