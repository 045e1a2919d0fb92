-- Who changed a queue's settings last, and when; and changes of some of them that leave the others alone.
ALTER TABLE $schema$.queue ADD changed_by text, ADD changed_at timestamptz;

DROP FUNCTION $schema$.set_queue_(text, boolean, bigint, bigint, bigint, bigint);

-- No row: there is no such queue, and none was to be made.
CREATE FUNCTION $schema$.change_queue_(
    queue_name text, make boolean, actor text, is_paused boolean, set_cap boolean, most bigint, set_complete boolean, complete_ms bigint,
    set_dead boolean, dead_ms bigint, set_cancelled boolean, cancelled_ms bigint
) RETURNS SETOF $schema$.queue LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('$schema_name$', 7005));
    IF make THEN INSERT INTO $schema$.queue(name) VALUES (queue_name) ON CONFLICT (name) DO NOTHING; END IF;
    RETURN QUERY UPDATE $schema$.queue q SET
        paused = coalesce(is_paused, q.paused),
        cap = CASE WHEN set_cap THEN most ELSE q.cap END,
        keep_complete_ms = CASE WHEN set_complete THEN complete_ms ELSE q.keep_complete_ms END,
        keep_dead_ms = CASE WHEN set_dead THEN dead_ms ELSE q.keep_dead_ms END,
        keep_cancelled_ms = CASE WHEN set_cancelled THEN cancelled_ms ELSE q.keep_cancelled_ms END,
        class_complete = CASE WHEN set_complete THEN $schema$.class_of_(complete_ms) ELSE q.class_complete END,
        class_dead = CASE WHEN set_dead THEN $schema$.class_of_(dead_ms) ELSE q.class_dead END,
        class_cancelled = CASE WHEN set_cancelled THEN $schema$.class_of_(cancelled_ms) ELSE q.class_cancelled END,
        changed_by = actor,
        changed_at = $schema$.now_()
    WHERE q.name = queue_name RETURNING q.*;
END $$;
