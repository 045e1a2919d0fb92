-- Pending events that are due, out of the others' sight for a while; and always one row with the revision of the definitions
-- as it was when these events were there. $1 limit, $2 for how long, ms, $3 bytes of data after which no more are taken
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
c AS MATERIALIZED (
    SELECT e.no, e.due_at, octet_length(e.data) AS size FROM $schema$.published e WHERE e.state = 0 AND e.due_at <= (SELECT t FROM n)
    ORDER BY e.due_at, e.no LIMIT $1::int FOR UPDATE SKIP LOCKED),
w AS MATERIALIZED (
    SELECT x.no FROM (SELECT c.no, sum(c.size) OVER (ORDER BY c.due_at, c.no) - c.size AS before FROM c) x WHERE x.before < $3::bigint),
u AS (
    UPDATE $schema$.published e SET due_at = n.t + $2::bigint * interval '1 millisecond', tries = e.tries + 1
    FROM n WHERE e.no = ANY (ARRAY(SELECT no FROM w)) RETURNING e.*)
SELECT u.no, u.tenant, u.source, u.id, u.type, u.data, u.time, u.cause, u.depth, u.state, u.reason, u.tries, u.published_at, u.processed_at,
    (SELECT r.revision FROM $schema$.workflow_revision r), n.t
FROM n LEFT JOIN u ON true ORDER BY u.no
