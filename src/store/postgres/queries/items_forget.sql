-- $1 tasks, $2 limit
DELETE FROM $schema$.item i WHERE i.ctid = ANY (ARRAY(
    SELECT x.ctid FROM $schema$.item x WHERE x.task = ANY ($1::bigint[]) LIMIT $2::int FOR UPDATE SKIP LOCKED))
