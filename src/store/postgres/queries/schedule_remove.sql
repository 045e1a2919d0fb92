-- With its runs and visits; the row is locked. $1 id
WITH r AS (DELETE FROM $schema$.schedule_run WHERE schedule = $1::bigint),
v AS (DELETE FROM $schema$.visit WHERE schedule = $1::bigint)
DELETE FROM $schema$.schedule WHERE id = $1::bigint
