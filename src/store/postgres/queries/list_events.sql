-- Newest first. $1 before, $2 limit, $3 tenant, $4 types, $5 states
SELECT e.no, e.tenant, e.source, e.id, e.type, e.data, e.time, e.cause, e.depth, e.state, e.reason, e.tries, e.published_at, e.processed_at
FROM $schema$.published e
WHERE e.no < $1::bigint AND ($3::bigint IS NULL OR e.tenant = $3::bigint)
    AND (cardinality($4::text[]) = 0 OR e.type = ANY ($4::text[])) AND (cardinality($5::smallint[]) = 0 OR e.state = ANY ($5::smallint[]))
ORDER BY e.no DESC LIMIT $2::int
