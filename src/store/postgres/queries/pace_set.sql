-- $1 tenant, $2 kind, $3 cap, $4 every_ms
INSERT INTO $schema$.deletion_pace AS p (tenant, kind, cap, every_ms, next_at)
VALUES ($1::bigint, $2::text, $3::int, $4::bigint, $schema$.now_())
ON CONFLICT (tenant, kind) DO UPDATE SET cap = excluded.cap, every_ms = excluded.every_ms,
    next_at = least(p.next_at, excluded.next_at + excluded.every_ms * interval '1 millisecond')
