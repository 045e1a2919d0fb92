-- What became of (task, token): the state it led to; NULL and held = it still holds. $1 task, $2 key, $3 secret, $4 periods, $5 parts
SELECT (SELECT a.to_state FROM $schema$.attempt a WHERE a.task = $1::bigint AND a.part = ANY ($4::int[]) AND a.key = $2::bigint AND a.secret = $3::bigint
        UNION ALL
        SELECT h.state FROM $schema$.history h WHERE h.id = $1::bigint AND h.part = ANY ($5::int[]) AND h.key = $2::bigint AND h.secret = $3::bigint
        LIMIT 1),
    EXISTS (SELECT FROM $schema$.lease e CROSS JOIN LATERAL unnest(e.ids, e.secrets) u(task, secret)
            WHERE e.key = $2::bigint AND u.task = $1::bigint AND u.secret = $3::bigint)
