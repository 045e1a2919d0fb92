-- Newest first. $1 schedule, $2 from or NULL, $3 before instant or NULL, $4 before entity, $5 limit
SELECT r.instant, r.entity, r.cause, r.task, r.skipped, r.decided_at FROM $schema$.schedule_run r
WHERE r.schedule = $1::bigint AND r.instant >= coalesce($2::timestamptz, '-infinity')
    AND (r.instant, r.entity) < (coalesce($3::timestamptz, 'infinity'), $4::text)
ORDER BY r.instant DESC, r.entity DESC LIMIT $5::int
