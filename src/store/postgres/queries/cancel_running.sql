-- Asks the holders of running tasks to stop. The first request's reason stands. $1 ids, sorted; $2 reason
WITH l AS MATERIALIZED (
    SELECT e.key, e.ids, e.flags FROM $schema$.lease e WHERE e.ids && $1::bigint[] ORDER BY e.key FOR UPDATE),
h AS MATERIALIZED (SELECT l.key, u.task, u.flags, u.n FROM l CROSS JOIN LATERAL unnest(l.ids, l.flags) WITH ORDINALITY u(task, flags, n)),
k AS MATERIALIZED (
    SELECT key, array_agg(CASE WHEN task = ANY ($1::bigint[]) THEN (flags | 4)::smallint ELSE flags END ORDER BY n) AS flags FROM h GROUP BY key),
u AS (UPDATE $schema$.lease e SET flags = k.flags FROM k WHERE e.key = k.key),
c AS (INSERT INTO $schema$.cancel_note(task, reason) SELECT task, $2::text FROM h WHERE task = ANY ($1::bigint[]) ON CONFLICT (task) DO NOTHING)
SELECT task FROM h WHERE task = ANY ($1::bigint[])
