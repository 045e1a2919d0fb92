-- New ones, and new intervals of those that are there; the schedule's row is locked. A shorter interval counts from now on.
-- $1 schedule, $2 entity, $3 every_ms, $4 next_at, $5 the schedule's every_ms
INSERT INTO $schema$.visit AS v (schedule, entity, every_ms, next_at)
SELECT $1::bigint, u.entity, u.every_ms, u.next_at FROM unnest($2::text[], $3::bigint[], $4::timestamptz[]) u(entity, every_ms, next_at)
ORDER BY u.entity
ON CONFLICT (schedule, entity) DO UPDATE SET every_ms = excluded.every_ms,
    next_at = CASE WHEN coalesce(excluded.every_ms, $5::bigint) < coalesce(v.every_ms, $5::bigint) THEN least(v.next_at, excluded.next_at)
        ELSE v.next_at END
