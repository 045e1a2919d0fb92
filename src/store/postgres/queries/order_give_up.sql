-- $1 tasks that are over
SELECT kind, task, lane, pos FROM $schema$.order_give_up_($1::bigint[])
