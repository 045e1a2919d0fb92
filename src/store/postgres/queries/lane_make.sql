-- The lane's number, made now or before. $1 queue, $2 type, $3 tenant, $4 priority, $5 suspect, $6 placement
SELECT $schema$.lane_of_($1::text, $2::text, $3::bigint, $4::int, $5::boolean, $6::text)
