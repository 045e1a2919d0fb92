-- $1 id, $2 turn, $3 considered_at, $4 next_at, $5 queued_at, $6 last_instant, $7 last_task, $8 running
UPDATE $schema$.schedule s SET turn = u.turn, considered_at = u.considered_at, next_at = u.next_at, queued_at = u.queued_at,
    last_instant = u.last_instant, last_task = u.last_task, running = u.running
FROM unnest($1::bigint[], $2::bigint[], $3::timestamptz[], $4::timestamptz[], $5::timestamptz[], $6::timestamptz[], $7::bigint[], $8::text[])
    u(id, turn, considered_at, next_at, queued_at, last_instant, last_task, running)
WHERE s.id = u.id AND s.id = ANY ($1::bigint[])
