-- Whether a task that nobody has touched was accepted before its type was known, which is known now.
SELECT 1 WHERE EXISTS (
    SELECT FROM $schema$.task_type d JOIN $schema$.lane l ON l.type = d.name JOIN $schema$.live v ON v.lane = l.id
    WHERE (v.flags & 32) <> 0 AND NOT EXISTS (SELECT FROM $schema$.past p WHERE p.task = v.id))
