-- Waits that do not count what they wait for, or are open when their task does not wait.
SELECT 'wait of task ' || z.task || ' counts ' || z.pending || ' of ' || n.pending || ' pending, ' || z.failed || ' of ' || n.failed || ' failed'
FROM $schema$.wait z CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE m.ended IS NULL) AS pending, count(*) FILTER (WHERE m.ended IN (6, 7)) AS failed
    FROM $schema$.wait_member m WHERE m.waiter = z.task) n
WHERE z.pending <> n.pending OR z.failed <> n.failed
UNION ALL
SELECT 'the wait of task ' || z.task || CASE WHEN z.open THEN ' is open, but the task does not wait' ELSE ' is over, but the task waits' END
FROM $schema$.wait z LEFT JOIN $schema$.outside o ON o.task = z.task AND o.state = 2
WHERE z.open <> (o.task IS NOT NULL)
UNION ALL
SELECT 'task ' || o.task || ' waits for nothing that is known' FROM $schema$.outside o
WHERE o.state = 2 AND NOT EXISTS (SELECT FROM $schema$.wait z WHERE z.task = o.task)
UNION ALL
SELECT 'task ' || m.waiter || ' waits for task ' || m.task || ', which is not there' FROM $schema$.wait_member m
WHERE m.ended IS NULL AND NOT EXISTS (SELECT FROM $schema$.live v WHERE v.id = m.task AND (v.flags & 128) <> 0)
LIMIT 20
