-- $1 queues, $2 leads
UPDATE $schema$.queue_share s SET leads = u.leads FROM unnest($1::text[], $2::text[]) u(queue, leads) WHERE s.queue = u.queue
