-- Tasks that were submitted by the handlers of others are as deep as those: a record of each, with the event that led
-- there. $1 tasks, $2 causes, $3 tenants
WITH c AS MATERIALIZED (
    SELECT x.cause, $schema$.event_depth_(x.cause) AS depth FROM (SELECT DISTINCT y.cause FROM unnest($2::bigint[]) y(cause)) x),
e AS MATERIALIZED (
    SELECT c.cause, c.depth, coalesce(o.event, (SELECT max(p.no) FROM $schema$.published p)) AS event
    FROM c LEFT JOIN LATERAL (
        WITH RECURSIVE up(id, steps) AS (
            SELECT c.cause, 1
            UNION ALL
            SELECT p.parent, up.steps + 1
            FROM up CROSS JOIN LATERAL (SELECT l.parent FROM $schema$.live l WHERE l.id = up.id OFFSET 0) p
            WHERE p.parent IS NOT NULL AND up.steps < 1000)
        SELECT f.event FROM up JOIN $schema$.firing f ON f.task = up.id ORDER BY f.depth DESC, f.event DESC LIMIT 1) o ON true
    WHERE c.depth > 0)
INSERT INTO $schema$.firing(event, workflow, name, tenant, version, kind, task, depth, at)
SELECT e.event, '', u.task::text, u.tenant, 0, 6, u.task, e.depth - 1, n.t
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) u(task, cause, tenant) JOIN e ON e.cause = u.cause,
    (SELECT $schema$.now_() AS t OFFSET 0) n
WHERE e.event IS NOT NULL
ON CONFLICT (event, workflow, name) DO NOTHING
