-- $1 tenant, $2 name, $3 dates
INSERT INTO $schema$.calendar(tenant, name, dates) VALUES ($1::bigint, $2::text, $3::text)
ON CONFLICT (tenant, name) DO UPDATE SET dates = excluded.dates
