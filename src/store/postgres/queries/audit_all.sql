-- $1 after, $2 limit. Numbers of one row are below those of the next block of 1024.
SELECT seq, task, tenant, from_state, to_state, event, attempt, generation, session, actor, reason, at
FROM $schema$.audit_entry_ WHERE row_seq > $1::bigint - 1024 AND seq > $1::bigint ORDER BY seq LIMIT $2::int
