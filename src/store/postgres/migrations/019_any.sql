-- What 014 says; and of any, without need_success, the first that is over is enough, whatever its end.
CREATE OR REPLACE FUNCTION $schema$.begin_wait_(new $schema$.live, after jsonb, at timestamptz, tenant_id bigint) RETURNS text LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    on_failure int := (after ->> 'on_failure')::int; any_one boolean := after -> 'any' = 'true'; needed boolean := after -> 'need_success' = 'true';
    asked bigint[] := ARRAY(SELECT e::bigint FROM jsonb_array_elements_text(after -> 'on') WITH ORDINALITY x(e, n) ORDER BY n);
    ids bigint[]; ends smallint[]; odd bigint; pending int; failed int; total int := cardinality(asked); verdict text; why text; number int;
BEGIN
    SELECT array_agg(h.task), array_agg(h.ended) INTO ids, ends FROM $schema$.hold_(asked) h WHERE h.tenant = tenant_id;
    SELECT u INTO odd FROM unnest(asked) WITH ORDINALITY x(u, n) WHERE u <> ALL (coalesce(ids, '{}')) ORDER BY n LIMIT 1;
    IF odd IS NOT NULL THEN
        RAISE EXCEPTION 'after names task %, which is not there: it never was, or its retention is over', odd USING ERRCODE = '22023';
    END IF;
    SELECT count(*) FILTER (WHERE e IS NULL), count(*) FILTER (WHERE e IN (6, 7)) INTO pending, failed FROM unnest(ends) e;
    verdict := CASE WHEN any_one AND pending + failed < total THEN 'goes' WHEN failed > 0 AND (CASE WHEN any_one THEN NOT needed ELSE on_failure <> 0 END) THEN 'failed'
        WHEN pending > 0 THEN 'waits' WHEN failed > 0 THEN 'failed' ELSE 'goes' END;
    IF verdict = 'failed' AND on_failure = 2 THEN
        INSERT INTO $schema$.cancel_due(task, waiter) SELECT u.task, new.id FROM unnest(ids, ends) u(task, ended) WHERE u.ended IS NULL;
    END IF;
    IF verdict <> 'goes' THEN PERFORM $schema$.note_(new.id, tenant_id, at, 4, 0, 2, 'store', NULL); END IF;
    IF verdict = 'failed' AND needed THEN
        SELECT 'task ' || a.u || ', which it waited for, is ' || CASE f.ended WHEN 6 THEN 'cancelled' ELSE 'dead' END INTO why
        FROM unnest(asked) WITH ORDINALITY a(u, n) JOIN unnest(ids, ends) f(task, ended) ON f.task = a.u WHERE f.ended IN (6, 7) ORDER BY a.n LIMIT 1;
        PERFORM $schema$.note_(new.id, tenant_id, at, 14, 2, 6, 'store', why);
        SELECT $schema$.period_(new.id) * 16 + q.class_cancelled INTO number FROM $schema$.lane l JOIN $schema$.queue q ON q.id = l.queue WHERE l.id = new.lane;
        PERFORM $schema$.make_leaf_('history', number);
        INSERT INTO $schema$.history(part, id, pos, created_at, due_at, finished_at, lane, policy, flags, explicit, state, attempt, claim_no, generation,
            crash_count, warning, alone, timeout_ms, parent, start_by, tags, unique_key, idem_key, input, reason)
        VALUES (number, new.id, new.pos, at, new.due_at, at, new.lane, new.policy, new.flags | 1024, new.explicit, 6, 0, 0, 1,
            0, false, false, new.timeout_ms, new.parent, new.start_by, new.tags, new.unique_key, new.idem_key, new.input, why);
        INSERT INTO $schema$.history_change(part, lane, state, n) VALUES (number, new.lane, 6, 1);
        RETURN 'cancelled';
    END IF;
    INSERT INTO $schema$.wait(task, pending, failed, total, on_failure, any_success, need_success, started, open)
    VALUES (new.id, pending, failed, total, on_failure, any_one, needed, false, verdict = 'waits');
    INSERT INTO $schema$.wait_member(waiter, no, asked, task, ended)
    SELECT new.id, a.n - 1, a.u, a.u, f.ended FROM unnest(asked) WITH ORDINALITY a(u, n) JOIN unnest(ids, ends) f(task, ended) ON f.task = a.u;
    IF verdict <> 'goes' THEN
        INSERT INTO $schema$.past(task, state, attempt, claim_no, generation, crash_count, updated_at) VALUES (new.id, 0, 0, 0, 1, 0, at);
    END IF;
    IF verdict = 'failed' THEN
        PERFORM $schema$.note_(new.id, tenant_id, at, 5, 2, 0, 'store', NULL);
        RETURN 'goes';
    END IF;
    IF verdict = 'waits' THEN
        INSERT INTO $schema$.outside(task, state, key, secret, session, reason) VALUES (new.id, 2, 0, 0, '00000000-0000-0000-0000-000000000000', '');
    END IF;
    RETURN verdict;
END $$;
