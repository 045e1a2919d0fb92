-- $1 limit
SELECT task FROM $schema$.outside WHERE expires_at <= (SELECT $schema$.now_()) ORDER BY expires_at LIMIT $1::int FOR UPDATE SKIP LOCKED
