-- $1 rounds
SELECT p.round, p.member, p.type, p.task, p.output, p.completed_at FROM $schema$.join_part p WHERE p.round = ANY ($1::bigint[])
ORDER BY p.round, p.member
