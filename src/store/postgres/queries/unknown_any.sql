-- Whether a task that nobody has touched was accepted before its type was known, which is known now.
SELECT 1 WHERE EXISTS (
    SELECT FROM $schema$.task_type d JOIN $schema$.lane l ON l.type = d.name CROSS JOIN LATERAL (
        SELECT FROM $schema$.live v
        WHERE v.lane = l.id AND (v.flags & 32) <> 0 AND NOT EXISTS (SELECT FROM $schema$.past p WHERE p.task = v.id OFFSET 0) LIMIT 1) v)
