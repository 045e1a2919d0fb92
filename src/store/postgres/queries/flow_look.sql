-- $1 limit
SELECT f.task FROM $schema$.flow f WHERE f.look_at <= (SELECT $schema$.now_()) ORDER BY f.look_at LIMIT $1::int FOR UPDATE SKIP LOCKED
