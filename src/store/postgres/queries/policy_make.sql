INSERT INTO $schema$.policy(retry) VALUES ($1::text) ON CONFLICT (retry) DO UPDATE SET retry = excluded.retry RETURNING id
