-- $1 schedule, $2 after, $3 limit
SELECT v.schedule, v.entity, v.every_ms, v.next_at, v.last_at FROM $schema$.visit v
WHERE v.schedule = $1::bigint AND v.entity > $2::text ORDER BY v.entity LIMIT $3::int
