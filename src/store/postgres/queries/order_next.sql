-- $1 tasks that are over, $2 their states, $3 whatever their policies say
SELECT kind, task, lane, pos, cause FROM $schema$.order_next_($1::bigint[], $2::smallint[], $3::boolean)
