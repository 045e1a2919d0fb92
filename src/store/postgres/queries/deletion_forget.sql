DELETE FROM $schema$.deletion WHERE ctid = ANY (ARRAY(
    SELECT d.ctid FROM $schema$.deletion d WHERE d.state = 2 AND d.due_at <= $schema$.now_() ORDER BY d.due_at LIMIT 500 FOR UPDATE SKIP LOCKED))
