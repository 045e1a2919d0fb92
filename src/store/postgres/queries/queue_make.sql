INSERT INTO $schema$.queue(name) VALUES ($1::text) ON CONFLICT (name) DO NOTHING
