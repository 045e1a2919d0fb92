-- Takes finished tasks out of history for a new generation. The attempt that ended them gets a row of its own.
-- $1 ids, sorted; $2 parts; $3 states that allow it; $4 periods (one per id)
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
c AS MATERIALIZED (SELECT h.id, h.part FROM $schema$.history h WHERE h.id = ANY ($1::bigint[]) AND h.part = ANY ($2::int[]) ORDER BY h.id FOR UPDATE),
h AS (DELETE FROM $schema$.history z USING c WHERE z.id = c.id AND z.part = c.part AND z.part = ANY ($2::int[]) AND z.state = ANY ($3::smallint[]) RETURNING z.*),
t AS (INSERT INTO $schema$.history_change(part, lane, state, n) SELECT h.part, h.lane, h.state, -count(*) FROM h GROUP BY 1, 2, 3),
a AS (
    INSERT INTO $schema$.attempt(part, task, claim_no, attempt, generation, ending, alone, started_at, finished_at, key, secret, session, node,
        exit_code, exit_signal, error, stderr_tail, to_state)
    SELECT h.part / 16, h.id, h.claim_no, h.attempt, h.generation, h.ending, h.alone, h.claimed_at, h.finished_at, h.key, h.secret, h.session, h.node,
        h.exit_code, h.exit_signal, h.error, h.stderr_tail, CASE WHEN h.key IS NOT NULL THEN h.state END
    FROM h WHERE h.ending IS NOT NULL),
v AS (
    INSERT INTO $schema$.live(id, pos, created_at, due_at, lane, policy, flags, explicit, timeout_ms, parent, start_by, tags, unique_key, idem_key,
        debounce_key, input)
    SELECT h.id, h.pos, h.created_at, n.t, h.lane, h.policy, (h.flags & ~(4 | 16 | 128 | 256 | 512 | 1024))::smallint, h.explicit, h.timeout_ms, h.parent, NULL, h.tags, h.unique_key,
        h.idem_key, h.debounce_key, h.input
    FROM h, n)
SELECT h.id, h.lane, h.policy, (h.flags & ~(4 | 16 | 128 | 256 | 512 | 1024))::int, 0, h.claim_no, h.generation + 1, 0, NULL::timestamptz, h.state, h.error, NULL::bigint, NULL::bigint,
    NULL::uuid, h.node, h.claimed_at, n.t, h.timeout_ms, n.t, h.pos, h.created_at, h.explicit::int, '', ''
FROM h, n ORDER BY h.id
