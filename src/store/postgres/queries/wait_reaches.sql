-- Whether somebody among $1, or what they cannot go on before, cannot go on before $2: by waiting for it, or by coming after it
-- in the order of a key. Ask wait_lock in the statement before.
WITH RECURSIVE r(task) AS (
    SELECT u.task FROM unnest($1::bigint[]) u(task)
    UNION
    SELECT d.task FROM r CROSS JOIN LATERAL (
        SELECT m.task FROM $schema$.wait w JOIN $schema$.wait_member m ON m.waiter = w.task
        WHERE w.task = r.task AND w.open AND m.ended IS NULL
        UNION ALL
        SELECT b.task FROM $schema$.ordered o CROSS JOIN LATERAL (
            SELECT f.task FROM $schema$.ordered f WHERE f.tenant = o.tenant AND f.key = o.key AND f.turn < o.turn ORDER BY f.turn DESC LIMIT 1) b
        WHERE o.task = r.task
        OFFSET 0) d)
SELECT EXISTS (SELECT FROM r WHERE r.task = $2::bigint)
