-- Which of the ids are live, and where: 0 waiting, 1 held, 2 outside; and a waiting one's state. $1 ids
SELECT v.id, CASE WHEN o.task IS NOT NULL THEN 2 WHEN r.task IS NOT NULL OR w.task IS NOT NULL THEN 0 ELSE 1 END, coalesce(p.state, 0)
FROM $schema$.live v
LEFT JOIN LATERAL (SELECT f.task FROM $schema$.ready f WHERE f.lane = v.lane AND f.pos = v.pos AND f.task = v.id OFFSET 0) r ON true
LEFT JOIN $row later w v.id$
LEFT JOIN $row outside o v.id$
LEFT JOIN $row past p v.id$
WHERE v.id = ANY ($1::bigint[])
