-- One row per attempt that did not end its task.
-- $1 period, $2 task, $3 claim_no, $4 attempt, $5 generation, $6 ending, $7 alone, $8 started_at, $9 finished_at, $10 key, $11 secret,
-- $12 session, $13 node, $14 exit_code, $15 exit_signal, $16 error, $17 stderr_tail, $18 to_state
INSERT INTO $schema$.attempt(part, task, claim_no, attempt, generation, ending, alone, started_at, finished_at, key, secret, session, node,
    exit_code, exit_signal, error, stderr_tail, to_state)
SELECT * FROM unnest($1::int[], $2::bigint[], $3::int[], $4::int[], $5::int[], $6::smallint[], $7::boolean[], $8::timestamptz[], $9::timestamptz[],
    $10::bigint[], $11::bigint[], $12::uuid[], $13::bigint[], $14::int[], $15::int[], $16::text[], $17::text[], $18::smallint[])
