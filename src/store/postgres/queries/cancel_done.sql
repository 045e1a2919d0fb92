-- $1 tasks, $2 waiter
DELETE FROM $schema$.cancel_due c WHERE c.waiter = $2::bigint AND c.task = ANY ($1::bigint[])
