-- Tasks have ended; those who wait for them count that. A statement of its own behind the one that ended them: it sees every
-- wait whose maker had kept them from ending. $1 tasks, sorted; $2 their states
WITH x AS MATERIALIZED (SELECT u.* FROM unnest($1::bigint[], $2::smallint[]) u(task, state)),
m AS MATERIALIZED (
    SELECT DISTINCT d.waiter FROM x CROSS JOIN LATERAL (
        SELECT f.waiter FROM $schema$.wait_member f WHERE f.task = x.task AND f.ended IS NULL OFFSET 0) d),
w AS MATERIALIZED (
    SELECT z.task FROM $schema$.wait z WHERE z.task = ANY (ARRAY(SELECT waiter FROM m)) ORDER BY z.task FOR UPDATE),
e AS (
    UPDATE $schema$.wait_member d SET ended = x.state FROM x
    WHERE d.task = x.task AND d.task = ANY ($1::bigint[]) AND d.ended IS NULL AND d.waiter IN (SELECT task FROM w)
    RETURNING d.waiter, d.ended),
c AS MATERIALIZED (SELECT waiter, count(*) AS n, count(*) FILTER (WHERE ended <> 4) AS f FROM e GROUP BY waiter)
UPDATE $schema$.wait z SET pending = z.pending - c.n::int, failed = z.failed + c.f::int FROM c
WHERE z.task = c.waiter AND z.task = ANY (ARRAY(SELECT waiter FROM c))
RETURNING z.task, z.pending, z.failed, z.total, z.on_failure, z.any_success, z.need_success, z.started, z.open
