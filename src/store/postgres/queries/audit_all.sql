-- $1 after, $2 limit. Numbers of one row are below those of the next block of 1024, which has at most two rows; so of the
-- rows that begin up to a block before, at most three are of no use.
SELECT a.seq + u.n - 1, u.task, a.tenant, a.from_state, a.to_state, a.event, a.attempt, a.generation, a.session, coalesce(a.actor, ''),
    coalesce(a.reason, ''), a.at
FROM (SELECT * FROM $schema$.audit z WHERE z.seq > $1::bigint - 1024 ORDER BY z.seq LIMIT $2::int + 3) a
CROSS JOIN LATERAL unnest(a.ids) WITH ORDINALITY u(task, n)
WHERE a.seq + u.n - 1 > $1::bigint ORDER BY 1 LIMIT $2::int
