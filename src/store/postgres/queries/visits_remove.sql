-- The schedule's row is locked. $1 schedule, $2 entities
DELETE FROM $schema$.visit WHERE schedule = $1::bigint AND entity = ANY ($2::text[])
