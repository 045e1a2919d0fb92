-- Candidates, newest first; what the filter says beyond this is decided by the caller.
-- $1 before, $2 limit, $3 tenant, $4 states, $5 types, $6 prefixes of types, $7 queues, $8 tags, $9/$10 created [from, to),
-- $11/$12 finished [from, to), $13 parent, $14 the lowest id to look at, $15 parts of history
SELECT * FROM $schema$.record_live_ t
WHERE t.id < $1::bigint AND t.id >= $14::bigint AND $15::int[] IS NOT NULL AND ($3::bigint IS NULL OR t.tenant = $3::bigint)
    AND (cardinality($4::smallint[]) = 0 OR t.state = ANY ($4::smallint[]))
    AND (cardinality($5::text[]) + cardinality($6::text[]) = 0 OR t.type = ANY ($5::text[])
         OR EXISTS (SELECT FROM unnest($6::text[]) p WHERE starts_with(t.type, p)))
    AND (cardinality($7::text[]) = 0 OR t.queue = ANY ($7::text[]))
    AND (cardinality($8::text[]) = 0 OR t.tags @> $8::text[])
    AND ($9::timestamptz IS NULL OR t.created_at >= $9::timestamptz) AND ($10::timestamptz IS NULL OR t.created_at < $10::timestamptz)
    AND ($11::timestamptz IS NULL OR t.finished_at >= $11::timestamptz) AND ($12::timestamptz IS NULL OR t.finished_at < $12::timestamptz)
    AND ($13::bigint IS NULL OR t.parent = $13::bigint)
ORDER BY t.id DESC LIMIT $2::int
