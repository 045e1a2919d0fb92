-- Tasks that are not in exactly one place, and places that hold no task.
WITH p AS (
    SELECT task FROM $schema$.ready UNION ALL SELECT task FROM $schema$.later UNION ALL SELECT task FROM $schema$.outside
    UNION ALL SELECT unnest(ids) FROM $schema$.lease),
c AS (SELECT task, count(*) AS n FROM p GROUP BY task)
SELECT coalesce(v.id, c.task), coalesce(c.n, 0) FROM $schema$.live v FULL JOIN c ON c.task = v.id WHERE v.id IS NULL OR c.n IS DISTINCT FROM 1 LIMIT 20
