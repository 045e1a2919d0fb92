-- The order keys of some tasks. $1 ids
SELECT o.task, o.key FROM $schema$.ordered o WHERE o.task = ANY ($1::bigint[])
