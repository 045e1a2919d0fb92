-- No row: there is one of that name now. $1 tenant, $2 name, $3 spec, $4 visits, $5 paused, $6 created_at, $7 next_at, $8 changed_by
INSERT INTO $schema$.schedule(tenant, name, spec, visits, revision, turn, paused, created_at, considered_at, next_at, running, changed_by, changed_at)
VALUES ($1::bigint, $2::text, $3::text, $4::boolean, 1, 0, $5::boolean, $6::timestamptz, $6::timestamptz, $7::timestamptz, '', $8::text, $6::timestamptz)
ON CONFLICT (tenant, name) DO NOTHING RETURNING id
