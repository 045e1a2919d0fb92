-- What some tasks held is free, or goes to those that are behind them in the leases that they have left, which are locked; then the
-- queues in which something waits that needs what is free.
-- $1 tasks, $2 only of those that are over, $3 how many queues, $4/$5 lanes and the positions below which they were found empty,
-- $6 the keys of the leases
WITH t AS MATERIALIZED (
    SELECT s.task, s.resource FROM $schema$.slot s
    WHERE s.task = ANY ($1::bigint[]) AND (NOT $2::boolean OR NOT EXISTS (SELECT FROM $schema$.live f WHERE f.id = s.task OFFSET 0))),
o AS MATERIALIZED (
    SELECT u.task, u.key, row_number() OVER (PARTITION BY u.key ORDER BY u.task) AS n FROM unnest($1::bigint[], $6::bigint[]) u(task, key)
    WHERE u.task IN (SELECT t.task FROM t)),
-- The last ones first: they are likely to end last.
b AS MATERIALIZED (
    SELECT e.key, u.task, row_number() OVER (PARTITION BY e.key ORDER BY u.task DESC) AS n
    FROM $schema$.lease e CROSS JOIN LATERAL unnest(e.ids, e.flags) u(task, flags)
    WHERE e.key = ANY (ARRAY(SELECT o.key FROM o)) AND (u.flags & 8192) <> 0),
h AS MATERIALIZED (SELECT o.task, o.key, b.task AS heir FROM o JOIN b ON b.key = o.key AND b.n = o.n),
m AS (UPDATE $schema$.slot s SET task = h.heir FROM h WHERE s.task = h.task AND s.task = ANY ($1::bigint[])),
e AS (
    UPDATE $schema$.lease e SET flags = (
        SELECT array_agg(CASE WHEN u.task = ANY (k.heirs) THEN ((u.flags & ~8192) | 2048)::smallint ELSE u.flags END ORDER BY u.n)
        FROM unnest(e.ids, e.flags) WITH ORDINALITY u(task, flags, n))
    FROM (SELECT h.key, array_agg(h.heir) AS heirs FROM h GROUP BY h.key) k WHERE e.key = k.key),
d AS (DELETE FROM $schema$.slot s WHERE s.task = ANY (ARRAY(SELECT t.task FROM t WHERE t.task NOT IN (SELECT h.task FROM h)))),
f AS MATERIALIZED (
    SELECT t.task, r.name, r.state, t.task IN (SELECT h.task FROM h) AS inherited FROM t JOIN $schema$.resource r ON r.id = t.resource),
n AS MATERIALIZED (SELECT array_agg(DISTINCT f.name) AS names FROM f WHERE NOT f.inherited)
SELECT f.task, f.name, f.state, NULL::text FROM f
UNION ALL
SELECT NULL, NULL, NULL, w.name FROM (
    SELECT DISTINCT q.name FROM n CROSS JOIN $schema$.lane l JOIN $schema$.queue q ON q.id = l.queue
    LEFT JOIN unnest($4::int[], $5::bigint[]) u(lane, mark) ON u.lane = l.id
    WHERE n.names IS NOT NULL
        AND (nullif(l.placement, '')::jsonb -> 'needs' ?| n.names
            OR 'queue:' || lower(q.name) = ANY (n.names) OR 'type:' || lower(l.type) = ANY (n.names))
        AND EXISTS (SELECT FROM $schema$.ready r WHERE r.lane = l.id AND r.pos > coalesce(u.mark, 0) OFFSET 0)
    LIMIT $3::int) w
