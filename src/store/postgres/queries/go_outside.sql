-- Tasks that go on outside, or wait for subtasks.
-- $1 task, $2 state, $3 key, $4 secret, $5 session, $6 expires_at, $7 reason, $8 attempt, $9 claim_no, $10 generation, $11 crash_count,
-- $12 crash_from, $13 node, $14 claimed_at, $15 error
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
x AS MATERIALIZED (
    SELECT u.* FROM unnest($1::bigint[], $2::smallint[], $3::bigint[], $4::bigint[], $5::uuid[], $6::timestamptz[], $7::text[], $8::int[], $9::int[],
        $10::int[], $11::int[], $12::timestamptz[], $13::bigint[], $14::timestamptz[], $15::text[])
        u(task, state, key, secret, session, expires_at, reason, attempt, claim_no, generation, crash_count, crash_from, node, claimed_at, error)),
g AS (DELETE FROM $schema$.progress z WHERE z.task = ANY ($1::bigint[])),
p AS (
    INSERT INTO $schema$.past(task, state, attempt, claim_no, generation, crash_count, crash_from, node, claimed_at, updated_at, error)
    SELECT task, 0, attempt, claim_no, generation, crash_count, crash_from, node, claimed_at, n.t, error FROM x, n
    ON CONFLICT (task) DO UPDATE SET state = excluded.state, attempt = excluded.attempt, claim_no = excluded.claim_no,
        generation = excluded.generation, crash_count = excluded.crash_count, crash_from = excluded.crash_from, node = excluded.node,
        claimed_at = excluded.claimed_at, updated_at = excluded.updated_at, error = excluded.error)
INSERT INTO $schema$.outside(task, state, key, secret, session, expires_at, reason)
SELECT task, state, key, secret, session, expires_at, reason FROM x
