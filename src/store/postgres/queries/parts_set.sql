-- All parts of the rounds, instead of those that they had. $1 round, $2 member, $3 type, $4 task, $5 output, $6 completed_at
WITH u AS MATERIALIZED (
    SELECT * FROM unnest($1::bigint[], $2::smallint[], $3::text[], $4::bigint[], $5::text[], $6::timestamptz[])
        x(round, member, type, task, output, completed_at)),
d AS (
    DELETE FROM $schema$.join_part p WHERE p.round = ANY ($1::bigint[])
        AND NOT EXISTS (SELECT FROM u WHERE u.round = p.round AND u.type = p.type))
INSERT INTO $schema$.join_part(round, member, type, task, output, completed_at) SELECT u.* FROM u
ON CONFLICT (round, type) DO UPDATE SET member = excluded.member, task = excluded.task, output = excluded.output,
    completed_at = excluded.completed_at
