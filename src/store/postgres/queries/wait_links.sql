-- What a task cannot go on before: with the order key, where it comes after it. $1 task
SELECT m.task, NULL FROM $schema$.wait w JOIN $schema$.wait_member m ON m.waiter = w.task
WHERE w.task = $1::bigint AND w.open AND m.ended IS NULL
UNION ALL
SELECT b.task, o.key FROM $schema$.ordered o CROSS JOIN LATERAL (
    SELECT f.task FROM $schema$.ordered f WHERE f.tenant = o.tenant AND f.key = o.key AND f.turn < o.turn ORDER BY f.turn DESC LIMIT 1) b
WHERE o.task = $1::bigint
