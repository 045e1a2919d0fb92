-- Puts tasks that are nowhere now among the waiting, with what happened to them.
-- $1 task, $2 lane, $3 flags, $4 due, $5 ready now, $6 position, $7 state, $8 attempt, $9 claim_no,
-- $10 generation, $11 crash_count, $12 crash_from, $13 node, $14 claimed_at, $15 error
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
x AS MATERIALIZED (
    SELECT u.*, n.t
    FROM n CROSS JOIN unnest($1::bigint[], $2::int[], $3::smallint[], $4::timestamptz[], $5::boolean[], $6::bigint[], $7::smallint[], $8::int[],
        $9::int[], $10::int[], $11::int[], $12::timestamptz[], $13::bigint[], $14::timestamptz[], $15::text[])
        u(task, lane, flags, due, is_ready, pos, state, attempt, claim_no, generation, crash_count, crash_from, node, claimed_at, error)),
p AS (
    INSERT INTO $schema$.past(task, state, attempt, claim_no, generation, crash_count, crash_from, node, claimed_at, updated_at, error)
    SELECT task, state, attempt, claim_no, generation, crash_count, crash_from, node, claimed_at, t, error FROM x
    ON CONFLICT (task) DO UPDATE SET state = excluded.state, attempt = excluded.attempt, claim_no = excluded.claim_no,
        generation = excluded.generation, crash_count = excluded.crash_count, crash_from = excluded.crash_from, node = excluded.node,
        claimed_at = excluded.claimed_at, updated_at = excluded.updated_at, error = excluded.error),
v AS (UPDATE $schema$.live z SET lane = x.lane, due_at = x.due, flags = ((x.flags & ~1) | (z.flags & (128 | 1024)))::smallint FROM x WHERE z.id = x.task AND z.id = ANY ($1::bigint[])),
g AS (DELETE FROM $schema$.progress z WHERE z.task = ANY ($1::bigint[])),
c AS (DELETE FROM $schema$.cancel_note z WHERE z.task = ANY ($1::bigint[])),
r AS (INSERT INTO $schema$.ready(lane, pos, task, flags) SELECT lane, pos, task, flags FROM x WHERE is_ready)
INSERT INTO $schema$.later(due, task, lane, flags) SELECT due, task, lane, flags FROM x WHERE NOT is_ready
