-- $1 tasks, $2 tenants, $3 keys, $4 policies
SELECT $schema$.order_join_($1::bigint[], $2::bigint[], $3::text[], $4::smallint[])
