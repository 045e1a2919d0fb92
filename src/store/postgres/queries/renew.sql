-- $1 session, $2 lease_ms, $3 worker_state, $4 running, $5 draining. No row: the session is over.
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
s AS (
    UPDATE $schema$.session z SET lease_until = n.t + $2::bigint * interval '1 millisecond', renewed_at = n.t, worker_state = $3::text,
        running = $4::int, state = ($5::boolean)::int::smallint
    FROM n WHERE z.id = $1::uuid AND z.state <= 1 AND z.lease_until > n.t RETURNING z.node),
k AS (UPDATE $schema$.node_label z SET last_seen = n.t FROM n, s WHERE z.id = s.node)
SELECT n.t, EXISTS (SELECT FROM s) FROM n
