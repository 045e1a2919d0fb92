-- Waiting tasks of a queue by what of their own may keep them: how many, and the last of them. $1 queue
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t)
SELECT count(*), max(w.task)
FROM (
    SELECT r.lane, r.task, r.flags, true AS due, false AS behind FROM $schema$.ready r
    UNION ALL
    SELECT x.lane, x.task, x.flags, x.due <= (SELECT t FROM n), x.due = 'infinity' FROM $schema$.later x) w
JOIN $schema$.lane l ON l.id = w.lane JOIN $schema$.queue q ON q.id = l.queue
WHERE q.name = $1::text
GROUP BY w.lane, w.due, w.behind,
    CASE WHEN (w.flags & 16) <> 0 THEN EXISTS (SELECT FROM $schema$.live v WHERE v.id = w.task AND v.start_by <= (SELECT t FROM n)) ELSE false END
