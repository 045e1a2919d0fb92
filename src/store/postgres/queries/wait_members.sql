-- What is waited for. $1 waiter, $2 no, $3 asked, $4 task, $5 ended
INSERT INTO $schema$.wait_member(waiter, no, asked, task, ended)
SELECT u.* FROM unnest($1::bigint[], $2::int[], $3::bigint[], $4::bigint[], $5::smallint[]) u(waiter, no, asked, task, ended)
