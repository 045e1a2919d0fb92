-- Moves tasks that are nowhere now to history.
-- $1 task, $2 period, $3 state, $4 ending (NULL = it ended without an attempt), $5 attempt, $6 claim_no, $7 generation, $8 crash_count,
-- $9 key, $10 secret, $11 session, $12 node, $13 claimed_at, $14 warning, $15 flags, $16 exit_code, $17 exit_signal, $18 output, $19 error,
-- $20 reason, $21 stderr_tail
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
x AS MATERIALIZED (
    SELECT u.* FROM unnest($1::bigint[], $2::int[], $3::smallint[], $4::smallint[], $5::int[], $6::int[], $7::int[], $8::int[], $9::bigint[],
        $10::bigint[], $11::uuid[], $12::bigint[], $13::timestamptz[], $14::boolean[], $15::smallint[], $16::int[], $17::int[], $18::text[],
        $19::text[], $20::text[], $21::text[])
        u(task, period, state, ending, attempt, claim_no, generation, crash_count, key, secret, session, node, claimed_at, warning, flags, exit_code,
            exit_signal, output, error, reason, stderr_tail)),
v AS (DELETE FROM $schema$.live z WHERE z.id = ANY ($1::bigint[]) RETURNING z.*),
p AS (DELETE FROM $schema$.past z WHERE z.task = ANY ($1::bigint[])),
u AS (DELETE FROM $schema$.live_key z WHERE z.task = ANY ($1::bigint[])),
g AS (DELETE FROM $schema$.progress z WHERE z.task = ANY ($1::bigint[])),
y AS (DELETE FROM $schema$.wait z WHERE z.task = ANY ($1::bigint[])),
ym AS (DELETE FROM $schema$.wait_member z WHERE z.waiter = ANY ($1::bigint[])),
c AS (DELETE FROM $schema$.cancel_note z WHERE z.task = ANY ($1::bigint[])),
-- If a join waits for its type, that is an event.
e AS (
    INSERT INTO $schema$.published(tenant, source, type, data, time, cause, depth, state, tries, published_at, due_at)
    SELECT l.tenant, 'stint', 'stint.task.complete', '{"task":"' || v.id || '"}', n.t, v.id, $schema$.event_depth_(v.id), 0, 0, n.t, n.t
    FROM v JOIN x ON x.task = v.id JOIN $schema$.lane l ON l.id = v.lane CROSS JOIN n
    WHERE x.state = 4 AND EXISTS (SELECT FROM $schema$.workflow_member m WHERE m.tenant = l.tenant AND m.type = l.type)),
i AS (
    INSERT INTO $schema$.history(part, id, pos, created_at, due_at, finished_at, claimed_at, lane, policy, flags, explicit, state, ending, attempt,
        claim_no, generation, crash_count, key, secret, session, node, warning, alone, exit_code, exit_signal, timeout_ms, parent, start_by, tags,
        unique_key, idem_key, debounce_key, input, output, error, reason, stderr_tail)
    SELECT x.period * 16 + CASE x.state WHEN 4 THEN q.class_complete WHEN 6 THEN q.class_cancelled ELSE q.class_dead END,
        v.id, v.pos, v.created_at, v.due_at, n.t, x.claimed_at, v.lane, v.policy, (v.flags | (x.flags & 4))::smallint, v.explicit, x.state, x.ending, x.attempt,
        x.claim_no, x.generation, x.crash_count, x.key, x.secret, x.session, x.node, x.warning, (x.flags & 64) <> 0, x.exit_code, x.exit_signal,
        v.timeout_ms, v.parent, v.start_by, v.tags, v.unique_key, v.idem_key, v.debounce_key, v.input, x.output, x.error, x.reason, x.stderr_tail
    FROM v JOIN x ON x.task = v.id JOIN $schema$.lane l ON l.id = v.lane JOIN $schema$.queue q ON q.id = l.queue
    CROSS JOIN n
    RETURNING part, lane, state)
INSERT INTO $schema$.history_change(part, lane, state, n) SELECT i.part, i.lane, i.state, count(*) FROM i GROUP BY 1, 2, 3
