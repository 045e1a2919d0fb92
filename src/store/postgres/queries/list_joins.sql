-- Newest first. $1 tenant, $2 workflow, $3 states, $4 limit, $5 before
SELECT r.id, r.tenant, r.workflow, r.name, r.key, r.generation, r.mask, r.state, r.task, r.message, r.created_at, r.expires_at, r.ended_at
FROM $schema$.join_round r
WHERE r.id < $5::bigint AND ($1::bigint IS NULL OR r.tenant = $1::bigint) AND ($2::text IS NULL OR r.workflow = $2::text)
    AND (cardinality($3::smallint[]) = 0 OR r.state = ANY ($3::smallint[]))
ORDER BY r.id DESC LIMIT $4::int
