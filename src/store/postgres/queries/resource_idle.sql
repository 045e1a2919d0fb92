-- Names that nobody has set and nobody holds, any of them. They are locked: whether that is still so is asked by a later statement.
-- $1 limit
SELECT r.name FROM $schema$.resource r
WHERE r.name NOT LIKE '%*' AND r.settings NOT LIKE '%"changed_at"%'
    AND NOT EXISTS (SELECT FROM $schema$.slot s WHERE s.resource = r.id)
ORDER BY random() LIMIT $1::int FOR UPDATE SKIP LOCKED
