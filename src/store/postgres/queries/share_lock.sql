-- One claim after the other takes from a queue that tenants share. $1 queues
SELECT s.queue, s.leads FROM $schema$.queue_share s WHERE s.queue = ANY ($1::text[]) ORDER BY s.queue COLLATE "C" FOR UPDATE
