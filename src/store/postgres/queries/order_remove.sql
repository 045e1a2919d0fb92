-- $1 queue
DELETE FROM $schema$.queue_order WHERE queue = $1::text RETURNING queue
