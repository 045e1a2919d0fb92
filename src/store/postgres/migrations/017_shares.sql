-- Queues that tenants share: how far each tenant is ahead, as JSON. A claim that takes from one locks its row.
CREATE TABLE $schema$.queue_share(queue text PRIMARY KEY, leads text NOT NULL DEFAULT '[]')
    WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);

-- Tasks that are over and were kept in the way of those behind them give up their turns. Answers which ones did (kind 2), and
-- where the next ones wait (kind 0: task, lane, position). One that has been tried again meanwhile keeps it.
CREATE FUNCTION $schema$.order_give_up_(tasks bigint[]) RETURNS TABLE(kind int, task bigint, lane int, pos bigint) LANGUAGE plpgsql AS $$
DECLARE gone bigint[];
BEGIN
    PERFORM $schema$.order_lock_(array_agg(o.tenant), array_agg(o.key)) FROM $schema$.ordered o WHERE o.task = ANY (tasks) AND o.turn IS NOT NULL;
    gone := ARRAY(SELECT o.task FROM $schema$.ordered o WHERE o.task = ANY (tasks) AND o.turn IS NOT NULL
        AND NOT EXISTS (SELECT FROM $schema$.live v WHERE v.id = o.task));
    UPDATE $schema$.ordered o SET turn = NULL, over_at = $schema$.now_() WHERE o.task = ANY (gone);
    RETURN QUERY SELECT 2, u.id, 0, 0::bigint FROM unnest(gone) u(id);
    RETURN QUERY
    WITH f AS MATERIALIZED (
        SELECT (SELECT o.task FROM $schema$.ordered o WHERE o.tenant = k.tenant AND o.key = k.key AND o.turn IS NOT NULL ORDER BY o.turn LIMIT 1) AS id
        FROM (SELECT DISTINCT o.tenant, o.key FROM $schema$.ordered o WHERE o.task = ANY (gone)) k)
    UPDATE $schema$.later w SET due = v.due_at FROM f JOIN $schema$.live v ON v.id = f.id
    WHERE w.task = f.id AND w.due = 'infinity' RETURNING 0, w.task, w.lane, v.pos;
END $$;

-- What 005 says; and a dead task that nobody can retry or cancel any more keeps nobody waiting.
CREATE OR REPLACE FUNCTION $schema$.drop_leaf_(label text, keep_ms bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    f $schema$.leaf%ROWTYPE; in_the_way bigint[];
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
        EXECUTE format('SELECT array_agg(o.task) FROM $schema$.ordered o JOIN $schema$.%I h ON h.id = o.task WHERE o.turn IS NOT NULL', label)
            INTO in_the_way;
        PERFORM $schema$.order_give_up_(in_the_way);
    END IF;
    DELETE FROM $schema$.leaf l WHERE l.name = label;
    EXECUTE format('DROP TABLE $schema$.%I', label);
    RETURN true;
END $$;
