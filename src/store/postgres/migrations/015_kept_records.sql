-- When to see whether the task of a result is still kept, as for flows.
ALTER TABLE $schema$.task_result RENAME COLUMN checked_at TO look_at;
ALTER INDEX $schema$.task_result_checked RENAME TO task_result_look;
-- Deletions that a node took and has not begun.
CREATE INDEX deletion_taken ON $schema$.deletion(due_at) WHERE state = 1;
-- The tasks that flows may still read.
CREATE INDEX flow_step_open ON $schema$.flow_step(child) WHERE state = 0 AND child IS NOT NULL;

-- Whether a period table has something to be kept, or will have. Days are kept whole.
CREATE OR REPLACE FUNCTION $schema$.leaf_needed_(f $schema$.leaf, keep_ms bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    kept_from timestamptz := date_trunc('day', ($schema$.now_() - keep_ms * interval '1 millisecond') AT TIME ZONE 'UTC') AT TIME ZONE 'UTC';
    newest int := (SELECT max(no) FROM $schema$.period);
    after bigint; needed boolean;
BEGIN
    IF f.parent = 'history' THEN
        -- What a live parent, or who waited for it, may still read stays. A flow reads a task once: until its step has ended.
        EXECUTE format('SELECT EXISTS (SELECT FROM $schema$.%1$I WHERE finished_at >= $1) OR ($2 AND NOT EXISTS (SELECT FROM $schema$.%1$I))
                OR EXISTS (SELECT FROM $schema$.%1$I h JOIN $schema$.live p ON p.id = h.parent
                           WHERE NOT EXISTS (SELECT FROM $schema$.flow w WHERE w.task = p.id))
                OR EXISTS (SELECT FROM $schema$.wait_member m JOIN $schema$.%1$I h ON h.id = m.task)
                OR EXISTS (SELECT FROM $schema$.flow_step s JOIN $schema$.%1$I h ON h.id = s.child JOIN $schema$.live v ON v.id = s.task
                           WHERE s.state = 0 AND s.child IS NOT NULL)', f.name)
            INTO needed USING kept_from, f.part / 16 >= newest - 1;
    ELSIF f.parent = 'attempt' THEN
        -- Whoever had not yet heard of a period wrote to the one before it, the attempt or the outcome.
        needed := f.part >= newest - 1 OR EXISTS (SELECT FROM $schema$.leaf l WHERE l.parent = 'history' AND l.part / 16 BETWEEN f.part - 1 AND f.part + 1)
            OR EXISTS (SELECT FROM $schema$.live v
                       WHERE v.id >= (SELECT p.first_id FROM $schema$.period p WHERE p.no = greatest(f.part - 1, 1))
                         AND v.id < coalesce((SELECT p.first_id FROM $schema$.period p WHERE p.no = f.part + 2), 9223372036854775807));
    ELSE
        -- Nor while a task that it tells about is still there; tasks of that day have ids below those of later periods.
        SELECT min(p.first_id) INTO after FROM $schema$.period p WHERE p.started_at >= to_timestamp((f.part + 1) * 86400.0);
        needed := f.part >= $schema$.day_(kept_from) OR after IS NULL;
        IF NOT needed THEN
            EXECUTE format('SELECT EXISTS (
                SELECT FROM (SELECT id FROM $schema$.live WHERE id < $1 UNION ALL SELECT id FROM $schema$.history WHERE id < $1) t
                WHERE EXISTS (SELECT FROM $schema$.%I a WHERE a.span @> t.id AND t.id = ANY (a.ids)))', f.name) INTO needed USING after;
        END IF;
    END IF;
    RETURN needed;
END $$;
