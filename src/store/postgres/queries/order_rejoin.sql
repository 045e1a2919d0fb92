-- $1 tasks
SELECT $schema$.order_rejoin_($1::bigint[])
