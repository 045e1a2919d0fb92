-- $1 limit, $2 policies that cannot be read here: their tasks are left
SELECT o.task, v.policy FROM $schema$.outside o JOIN $row live v o.task$
WHERE o.expires_at <= (SELECT $schema$.now_()) AND v.policy <> ALL ($2::bigint[])
ORDER BY o.expires_at LIMIT $1::int FOR UPDATE OF o SKIP LOCKED
