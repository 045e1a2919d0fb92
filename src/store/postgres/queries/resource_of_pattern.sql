-- $1 pattern
SELECT r.name FROM $schema$.resource r WHERE r.pattern = $1::text AND r.pattern <> '' ORDER BY r.id
