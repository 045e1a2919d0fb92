-- In the order given, without those that are not known. $1 tenant, $2 source, $3 id
SELECT u.ord::bigint, e.no, e.type, e.data FROM unnest($1::bigint[], $2::text[], $3::text[]) WITH ORDINALITY u(tenant, source, id, ord)
CROSS JOIN LATERAL (
    SELECT f.no, f.type, f.data FROM $schema$.published f WHERE f.tenant = u.tenant AND f.source = u.source AND f.id = u.id OFFSET 0) e
ORDER BY u.ord
