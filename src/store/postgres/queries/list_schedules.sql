-- $1 tenant or NULL, $2 after tenant, $3 after name, $4 limit
SELECT s.id, s.spec, s.revision, s.turn, s.paused, s.created_at, s.considered_at, s.next_at, s.queued_at, s.last_instant, s.last_task, s.running,
    s.changed_by, s.changed_at, s.name
FROM $schema$.schedule s WHERE (s.tenant, s.name) > ($2::bigint, $3::text) AND ($1::bigint IS NULL OR s.tenant = $1::bigint)
ORDER BY s.tenant, s.name LIMIT $4::int
