-- $1 queue, $2 settings
INSERT INTO $schema$.queue_order(queue, settings) VALUES ($1::text, $2::text) ON CONFLICT (queue) DO UPDATE SET settings = excluded.settings
