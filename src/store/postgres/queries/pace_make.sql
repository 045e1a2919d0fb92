-- $1 tenant, $2 kind, $3 cap, $4 every_ms
INSERT INTO $schema$.deletion_pace(tenant, kind, cap, every_ms, next_at) VALUES ($1::bigint, $2::text, $3::int, $4::bigint, $schema$.now_())
ON CONFLICT DO NOTHING
