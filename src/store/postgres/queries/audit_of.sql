-- $1 task, $2 after, $3 limit
SELECT seq, task, tenant, from_state, to_state, event, attempt, generation, session, actor, reason, at
FROM $schema$.audit_entry_ WHERE span @> $1::bigint AND task = $1::bigint AND seq > $2::bigint ORDER BY seq LIMIT $3::int
