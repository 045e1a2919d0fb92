-- With what is held of them. $1 names
WITH d AS (DELETE FROM $schema$.resource r WHERE r.name = ANY ($1::text[]) RETURNING r.id, r.name),
s AS (DELETE FROM $schema$.slot z WHERE z.resource = ANY (ARRAY(SELECT d.id FROM d)))
SELECT d.name FROM d
