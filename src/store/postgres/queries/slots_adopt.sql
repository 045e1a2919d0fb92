-- Running tasks, whose leases are locked, hold more than they did. $1 tasks, $2 resources, $3 units
WITH s AS (
    INSERT INTO $schema$.slot(task, resource, units) SELECT u.task, u.resource, u.units FROM unnest($1::bigint[], $2::int[], $3::int[]) u(task, resource, units)
    ON CONFLICT DO NOTHING)
UPDATE $schema$.lease e SET flags = (
    SELECT array_agg(CASE WHEN u.task = ANY ($1::bigint[]) THEN ((u.flags & ~8192) | 2048)::smallint ELSE u.flags END ORDER BY u.n)
    FROM unnest(e.ids, e.flags) WITH ORDINALITY u(task, flags, n))
WHERE e.ids && $1::bigint[]
