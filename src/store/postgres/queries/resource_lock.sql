-- So that nobody else takes of them. What is held is counted by a later statement: it sees what the one before committed.
-- $1 names
SELECT r.id, r.name FROM $schema$.resource r WHERE r.name = ANY ($1::text[]) ORDER BY r.id FOR UPDATE
