-- One that has begun makes way if the caller knows it. No row: there is another.
-- $1 tenant, $2 kind, $3 key, $4 initiator, $5 steps, $6 grace_ms, $7 what it replaces
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t)
INSERT INTO $schema$.deletion AS d (tenant, kind, key, initiator, steps, state, marked_at, delete_at, due_at)
SELECT $1::bigint, $2::text, $3::text, $4::text, $5::text, 0, n.t, n.t + $6::bigint * interval '1 millisecond',
    n.t + $6::bigint * interval '1 millisecond' FROM n
ON CONFLICT (tenant, kind, key) DO UPDATE SET id = DEFAULT, initiator = excluded.initiator, steps = excluded.steps, state = 0,
    marked_at = excluded.marked_at, delete_at = excluded.delete_at, due_at = excluded.due_at, task = NULL
WHERE d.state = 2 AND d.id = $7::bigint
RETURNING d.id, d.tenant, d.kind, d.key, d.initiator, d.steps, d.state::int, d.marked_at, d.delete_at, d.task
