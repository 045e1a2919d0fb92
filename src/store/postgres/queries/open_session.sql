-- $1 id, $2 hostname, $3 pid, $4 lease_ms, $5 slots, $6 queues, $7 types, $8 version, $9 labels
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
k AS (
    INSERT INTO $schema$.node_label(hostname, last_seen) SELECT $2::text, n.t FROM n
    ON CONFLICT (lower(hostname)) DO UPDATE SET last_seen = excluded.last_seen RETURNING id)
INSERT INTO $schema$.session AS session(id, node, pid, state, slots, queues, types, labels, version, started_at, renewed_at, lease_until)
SELECT $1::uuid, k.id, $3::bigint, 0, $5::int, $6::text[], $7::text[], $9::text[], $8::text, n.t, n.t, n.t + $4::bigint * interval '1 millisecond' FROM n, k
-- An id that is there already stays as it is: a session that is over is never brought back.
ON CONFLICT (id) DO UPDATE SET node = session.node
RETURNING node
