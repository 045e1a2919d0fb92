-- Their schedules' rows are locked. $1 schedule, $2 entity, $3 next_at, $4 last_at (NULL = as it is)
UPDATE $schema$.visit v SET next_at = u.next_at, last_at = coalesce(u.last_at, v.last_at)
FROM unnest($1::bigint[], $2::text[], $3::timestamptz[], $4::timestamptz[]) u(schedule, entity, next_at, last_at)
WHERE v.schedule = u.schedule AND v.entity = u.entity AND v.schedule = ANY ($1::bigint[]) AND v.entity = ANY ($2::text[])
