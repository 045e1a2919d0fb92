-- What is to be cancelled because of a failure beside it. $1 limit
SELECT c.task, c.waiter FROM $schema$.cancel_due c ORDER BY c.waiter, c.task LIMIT $1::int
