-- Of one kind, whose pace is locked. $1 tenant, $2 kind, $3 at most, $4 taken_ms
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
x AS MATERIALIZED (
    SELECT d.id FROM n, $schema$.deletion d WHERE d.tenant = $1::bigint AND d.kind = $2::text AND d.due_at <= n.t AND d.state = 0
    ORDER BY d.due_at, d.id LIMIT $3::int FOR UPDATE OF d SKIP LOCKED),
p AS (
    UPDATE $schema$.deletion_pace p SET next_at = n.t + p.every_ms * interval '1 millisecond' FROM n
    WHERE p.tenant = $1::bigint AND p.kind = $2::text AND EXISTS (SELECT FROM x))
UPDATE $schema$.deletion d SET state = 1, due_at = n.t + $4::bigint * interval '1 millisecond' FROM n, x WHERE d.id = x.id
RETURNING d.id, d.tenant, d.kind, d.key, d.initiator, d.steps, d.state::int, d.marked_at, d.delete_at, d.task
