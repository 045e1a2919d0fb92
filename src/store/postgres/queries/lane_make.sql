-- Returns the lane's number, made now or before. $1 queue, $2 type, $3 tenant, $4 priority, $5 suspect
WITH made AS (
    INSERT INTO $schema$.lane(queue, type, tenant, priority, suspect)
    SELECT q.id, $2::text, $3::bigint, $4::int, $5::boolean FROM $schema$.queue q WHERE q.name = $1::text
    ON CONFLICT (queue, type, tenant, priority, suspect) DO UPDATE SET type = excluded.type
    RETURNING id)
SELECT id FROM made
