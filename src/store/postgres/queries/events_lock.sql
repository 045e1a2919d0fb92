-- $1 numbers, sorted
SELECT e.no, e.tenant, e.state, e.depth FROM $schema$.published e WHERE e.no = ANY ($1::bigint[]) ORDER BY e.no FOR UPDATE
