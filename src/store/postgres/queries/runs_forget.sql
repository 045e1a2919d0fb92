-- $1 limit
DELETE FROM $schema$.schedule_run WHERE ctid = ANY (ARRAY(
    SELECT r.ctid FROM $schema$.schedule_run r WHERE r.expires_at <= (SELECT $schema$.now_()) ORDER BY r.expires_at LIMIT $1::int
    FOR UPDATE SKIP LOCKED))
