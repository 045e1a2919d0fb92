-- A revision for each that is new or different. $1 name, $2 queue, $3 priority, $4 retry, $5 timeout_ms, $6 isolated, $7 placement
INSERT INTO $schema$.task_type AS d (name, queue, priority, retry, timeout_ms, isolated, placement, revision, updated_at)
SELECT u.*, 1, $schema$.now_() FROM unnest($1::text[], $2::text[], $3::smallint[], $4::text[], $5::bigint[], $6::boolean[], $7::text[])
    u(name, queue, priority, retry, timeout_ms, isolated, placement)
ON CONFLICT (name) DO UPDATE SET queue = excluded.queue, priority = excluded.priority, retry = excluded.retry,
    timeout_ms = excluded.timeout_ms, isolated = excluded.isolated, placement = excluded.placement, revision = d.revision + 1, updated_at = excluded.updated_at
WHERE (d.queue, d.priority, d.retry, d.timeout_ms, d.isolated, d.placement)
    IS DISTINCT FROM (excluded.queue, excluded.priority, excluded.retry, excluded.timeout_ms, excluded.isolated, d.placement)
