-- Who changes one of these waits, and then sees the schedule that names it. $1 tenant, $2 names
SELECT c.name FROM $schema$.calendar c WHERE c.tenant = $1::bigint AND c.name = ANY ($2::text[]) ORDER BY c.name FOR SHARE
