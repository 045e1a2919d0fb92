-- $1 task, $2 no, $3 name, $4 occurrence, $5 kind, $6 state, $7 about, $8 hash, $9 result, $10 child, $11 due, $12 late, $13 at, $14 ended
INSERT INTO $schema$.flow_step(task, no, name, occurrence, kind, state, about, hash, result, child, due_at, late, at, ended_at)
VALUES ($1::bigint, $2::int, $3::text, $4::int, $5::int, $6::int, $7::text, $8::text, $9::text, $10::bigint, $11::timestamptz,
    $12::bool, $13::timestamptz, $14::timestamptz)
