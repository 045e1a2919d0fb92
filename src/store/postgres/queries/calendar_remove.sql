-- $1 tenant, $2 name
DELETE FROM $schema$.calendar WHERE tenant = $1::bigint AND name = $2::text
