-- $1 tenant, $2 states, $3 types, $4 prefixes of types, $5 queues
SELECT t.state, q.name, l.type, sum(t.n)::bigint
FROM (SELECT s.lane, s.state, s.n FROM $schema$.history_tally s UNION ALL SELECT c.lane, c.state, c.n FROM $schema$.history_change c) t
JOIN $schema$.lane l ON l.id = t.lane JOIN $schema$.queue q ON q.id = l.queue
WHERE ($1::bigint IS NULL OR l.tenant = $1::bigint)
    AND (cardinality($2::smallint[]) = 0 OR t.state = ANY ($2::smallint[]))
    AND (cardinality($3::text[]) + cardinality($4::text[]) = 0 OR l.type = ANY ($3::text[])
         OR EXISTS (SELECT FROM unnest($4::text[]) p WHERE starts_with(l.type, p)))
    AND (cardinality($5::text[]) = 0 OR q.name = ANY ($5::text[]))
GROUP BY 1, 2, 3 HAVING sum(t.n) <> 0
