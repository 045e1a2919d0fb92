-- What was waited for before. $1 waiters
DELETE FROM $schema$.wait_member m WHERE m.waiter = ANY ($1::bigint[])
