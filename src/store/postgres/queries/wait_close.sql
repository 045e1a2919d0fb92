-- Waits that are over; and with $2, what is left of them is to be cancelled. $1 tasks, $2 of which with cancelling the rest
WITH c AS (UPDATE $schema$.wait z SET open = false WHERE z.task = ANY ($1::bigint[]))
INSERT INTO $schema$.cancel_due(task, waiter)
SELECT DISTINCT m.task, m.waiter FROM $schema$.wait_member m WHERE m.waiter = ANY ($2::bigint[]) AND m.ended IS NULL
ON CONFLICT DO NOTHING
