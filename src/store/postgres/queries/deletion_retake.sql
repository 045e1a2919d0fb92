-- Those that a node took and did not begin in time, of whatever pace: theirs was counted. $1 at most, $2 taken_ms
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
x AS MATERIALIZED (
    SELECT d.id FROM n, $schema$.deletion d WHERE d.due_at <= n.t AND d.state = 1
    ORDER BY d.due_at, d.id LIMIT $1::int FOR UPDATE OF d SKIP LOCKED)
UPDATE $schema$.deletion d SET due_at = n.t + $2::bigint * interval '1 millisecond' FROM n, x WHERE d.id = x.id
RETURNING d.id, d.tenant, d.kind, d.key, d.initiator, d.steps, d.state::int, d.marked_at, d.delete_at, d.task
