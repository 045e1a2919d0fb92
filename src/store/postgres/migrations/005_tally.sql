-- How many finished tasks there are, so that counting never looks at them: per history table, lane and state. Each
-- settling transaction appends what it adds (or an operator's retry takes away), so that they do not wait for each other;
-- housekeeping folds that into the sums. The count is the sum of both.
CREATE TABLE $schema$.history_tally(
    part int NOT NULL,
    lane int NOT NULL,
    state smallint NOT NULL,
    n bigint NOT NULL,
    PRIMARY KEY (part, lane, state)
);
CREATE TABLE $schema$.history_change(
    part int NOT NULL,
    lane int NOT NULL,
    state smallint NOT NULL,
    n int NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
LOCK TABLE $schema$.history IN SHARE MODE;
INSERT INTO $schema$.history_tally(part, lane, state, n) SELECT h.part, h.lane, h.state, count(*) FROM $schema$.history h GROUP BY 1, 2, 3;

-- What 001 says, and what was counted of the table goes with it.
CREATE OR REPLACE FUNCTION $schema$.drop_leaf_(label text, keep_ms bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    f $schema$.leaf%ROWTYPE;
BEGIN
    SELECT * INTO f FROM $schema$.leaf l WHERE l.name = label FOR UPDATE;
    IF f.name IS NULL OR $schema$.leaf_needed_(f, keep_ms) THEN RETURN false; END IF;
    -- Whoever is writing to it is waited for, nobody begins to, and what was written meanwhile is seen. Readers and
    -- the other period tables are not kept waiting by the second look.
    EXECUTE format('LOCK TABLE $schema$.%I IN SHARE MODE', label);
    IF $schema$.leaf_needed_(f, keep_ms) THEN RETURN false; END IF;
    IF f.parent = 'history' THEN
        -- In this order: whoever is folding changes into the sums is waited for here, and its sums are seen below.
        DELETE FROM $schema$.history_change c WHERE c.part = f.part;
        DELETE FROM $schema$.history_tally t WHERE t.part = f.part;
    END IF;
    DELETE FROM $schema$.leaf l WHERE l.name = label;
    EXECUTE format('DROP TABLE $schema$.%I', label);
    RETURN true;
END $$;

-- How many wait in a queue, as far as `most`: whoever is at the cap need not know by how much. In the order of an index,
-- since a bitmap would be made of all that wait before the first is counted.
CREATE FUNCTION $schema$.waiting_(queue_id int, most bigint) RETURNS bigint LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    SET enable_bitmapscan = off SET enable_seqscan = off AS $$
DECLARE left_ bigint := most; found bigint; lane_id int;
BEGIN
    FOR lane_id IN SELECT l.id FROM $schema$.lane l WHERE l.queue = queue_id LOOP
        EXIT WHEN left_ <= 0;
        SELECT count(*) INTO found FROM (
            (SELECT FROM $schema$.ready y WHERE y.lane = lane_id LIMIT left_) UNION ALL
            (SELECT FROM $schema$.later w WHERE w.lane = lane_id LIMIT left_)) x;
        left_ := left_ - found;
    END LOOP;
    RETURN most - greatest(left_, 0);
END $$;
