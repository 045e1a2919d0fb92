-- All leases that a batch of outcomes touches, in one order for everybody. $1 keys, sorted
SELECT e.key FROM $schema$.lease e WHERE e.key = ANY ($1::bigint[]) ORDER BY e.key FOR UPDATE
