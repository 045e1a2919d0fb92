-- $1 tenant, $2 states, $3 types, $4 prefixes of types, $5 queues
SELECT t.state, t.queue, t.type, count(*) FROM $schema$.record_history_ t
WHERE ($1::bigint IS NULL OR t.tenant = $1::bigint)
    AND (cardinality($2::smallint[]) = 0 OR t.state = ANY ($2::smallint[]))
    AND (cardinality($3::text[]) + cardinality($4::text[]) = 0 OR t.type = ANY ($3::text[])
         OR EXISTS (SELECT FROM unnest($4::text[]) p WHERE starts_with(t.type, p)))
    AND (cardinality($5::text[]) = 0 OR t.queue = ANY ($5::text[]))
GROUP BY 1, 2, 3
