-- All leases that a batch of outcomes touches, in one order for everybody; a statement of its own, so that the next one
-- sees what was done under the locks it waited for. $1 keys, sorted
SELECT e.key FROM $schema$.lease e WHERE e.key = ANY ($1::bigint[]) ORDER BY e.key FOR UPDATE
