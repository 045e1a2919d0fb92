-- $1 queues, sorted
INSERT INTO $schema$.queue_share(queue) SELECT u.queue FROM unnest($1::text[]) u(queue) ON CONFLICT (queue) DO NOTHING
