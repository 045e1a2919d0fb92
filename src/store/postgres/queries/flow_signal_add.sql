-- $1 task, $2 no, $3 name, $4 id, $5 payload, $6 at
INSERT INTO $schema$.flow_signal(task, no, name, id, payload, at) VALUES ($1::bigint, $2::int, $3::text, $4::text, $5::text, $6::timestamptz)
