-- Which of the ids are live, and where: 0 waiting, 1 held, 2 outside; and a waiting one's state. $1 ids
SELECT v.id, CASE WHEN o.task IS NOT NULL THEN 2 WHEN r.task IS NOT NULL OR w.task IS NOT NULL THEN 0 ELSE 1 END, coalesce(p.state, 0)
FROM $schema$.live v
LEFT JOIN $schema$.ready r ON r.lane = v.lane AND r.pos = v.pos AND r.task = v.id
LEFT JOIN $schema$.later w ON w.task = v.id
LEFT JOIN $schema$.outside o ON o.task = v.id
LEFT JOIN $schema$.past p ON p.task = v.id
WHERE v.id = ANY ($1::bigint[])
