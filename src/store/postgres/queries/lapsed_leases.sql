-- Locks leases of live sessions with an attempt over its time, and tells which. A lease's deadline is that of the shortest it was
-- made with, which may have left it: such a one must not stand before those that are late. $1 grace_ms, $2 how many lease rows,
-- $3 policies that cannot be read here: their tasks are left
WITH n AS MATERIALIZED (SELECT $schema$.now_() - $1::bigint * interval '1 millisecond' AS t),
l AS MATERIALIZED (
    SELECT e.* FROM $schema$.lease e JOIN $schema$.session s ON s.id = e.session AND s.state <= 1
    WHERE e.deadline <= (SELECT t FROM n) AND EXISTS (
        SELECT FROM unnest(e.ids, e.flags) u(task, flags) JOIN $row live v u.task$
        WHERE (u.flags & 8) <> 0 AND e.started_at + v.timeout_ms * interval '1 millisecond' <= (SELECT t FROM n)
            AND v.policy <> ALL ($3::bigint[]))
    ORDER BY e.deadline LIMIT $2::int FOR UPDATE OF e SKIP LOCKED)
SELECT l.key, u.task, u.secret
FROM l CROSS JOIN n CROSS JOIN LATERAL unnest(l.ids, l.secrets, l.flags) u(task, secret, flags) JOIN $row live v u.task$
WHERE (u.flags & 8) <> 0 AND l.started_at + v.timeout_ms * interval '1 millisecond' <= n.t AND v.policy <> ALL ($3::bigint[])
ORDER BY u.task
