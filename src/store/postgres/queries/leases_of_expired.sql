-- Locks leases of sessions that are over. $1 how many lease rows, $2 policies that cannot be read here: their tasks are left
SELECT e.key, CASE WHEN cardinality($2::bigint[]) = 0 THEN e.ids ELSE ARRAY(
        SELECT u.task FROM unnest(e.ids) WITH ORDINALITY u(task, n) JOIN $row live v u.task$
        WHERE v.policy <> ALL ($2::bigint[]) ORDER BY u.n) END,
    CASE WHEN cardinality($2::bigint[]) = 0 THEN e.secrets ELSE ARRAY(
        SELECT u.secret FROM unnest(e.ids, e.secrets) WITH ORDINALITY u(task, secret, n) JOIN $row live v u.task$
        WHERE v.policy <> ALL ($2::bigint[]) ORDER BY u.n) END
FROM $schema$.session s JOIN $schema$.lease e ON e.session = s.id
WHERE s.state >= 2
    -- Asked once and first, session by session: mostly they have none, and then those of the others are not walked, nor what
    -- is dead of them.
    AND (SELECT EXISTS (SELECT FROM $schema$.session x WHERE x.state >= 2 AND EXISTS (SELECT FROM $schema$.lease y WHERE y.session = x.id OFFSET 0)))
    AND (cardinality($2::bigint[]) = 0 OR EXISTS (
    SELECT FROM unnest(e.ids) u(task) JOIN $row live v u.task$ WHERE v.policy <> ALL ($2::bigint[])))
ORDER BY e.key LIMIT $1::int FOR UPDATE OF e SKIP LOCKED
