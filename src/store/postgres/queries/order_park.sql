-- $1 tasks
SELECT $schema$.order_park_($1::bigint[])
