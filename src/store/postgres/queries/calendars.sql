-- $1 tenant
SELECT c.name, c.dates FROM $schema$.calendar c WHERE c.tenant = $1::bigint ORDER BY c.name
