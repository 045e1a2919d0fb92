-- $1 names
DELETE FROM $schema$.resource r WHERE r.name = ANY ($1::text[]) RETURNING r.name
