-- The definition, if there is one, and how many there are. $1 tenant, $2 name
SELECT c.n, w.tenant, w.name, w.version, w.definition, w.updated_at, w.updated_by
FROM (SELECT count(*) AS n FROM $schema$.workflow) c LEFT JOIN $schema$.workflow w ON w.tenant = $1::bigint AND w.name = $2::text
