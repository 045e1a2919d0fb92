-- The first failure of each wait. $1 waiters
SELECT DISTINCT ON (m.waiter) m.waiter, m.asked, m.task, m.ended FROM $schema$.wait_member m
WHERE m.waiter = ANY ($1::bigint[]) AND m.ended IN (6, 7) ORDER BY m.waiter, m.no
