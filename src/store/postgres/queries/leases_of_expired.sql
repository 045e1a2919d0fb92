-- Locks leases of sessions that are over. $1 how many lease rows
SELECT e.key, e.ids, e.secrets FROM $schema$.session s JOIN $schema$.lease e ON e.session = s.id
WHERE s.state >= 2 ORDER BY e.key LIMIT $1::int FOR UPDATE OF e SKIP LOCKED
