-- $1 number, $2 state, $3 reason, $4 ms until it comes again
UPDATE $schema$.published e SET state = u.state, reason = u.reason, due_at = n.t + u.later * interval '1 millisecond',
    processed_at = CASE WHEN u.state <> 0 THEN n.t END
FROM unnest($1::bigint[], $2::smallint[], $3::text[], $4::bigint[]) u(no, state, reason, later), (SELECT $schema$.now_() AS t OFFSET 0) n
WHERE e.no = u.no AND e.no = ANY ($1::bigint[])
