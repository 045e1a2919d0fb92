-- submit(jsonb) takes what every other door takes: tasks that start after others, needs, labels and order keys. What a task
-- that is named in "after" needs to end, and the line of an order key, are the caller's until its transaction ends.

CREATE FUNCTION $schema$.check_flag_(field text, value jsonb, otherwise boolean) RETURNS boolean LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF value IS NULL THEN RETURN otherwise; END IF;
    IF jsonb_typeof(value) <> 'boolean' THEN
        RAISE EXCEPTION '% is %; give true or false', field, left(value::text, 64) USING ERRCODE = '22023';
    END IF;
    RETURN value = 'true';
END $$;

-- {"gpu": 1, "license": 2} or ["gpu", "license=2"]; answers the first, by names in lower case. What is given twice is the sum.
CREATE FUNCTION $schema$.check_needs_(needs jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE one record; units bigint; checked jsonb := '{}'; n int := 0;
BEGIN
    IF needs IS NULL THEN RETURN NULL; END IF;
    IF jsonb_typeof(needs) NOT IN ('object', 'array') THEN
        RAISE EXCEPTION 'needs is %; give {"NAME": UNITS} or an array of NAME[=UNITS]', left(needs::text, 64) USING ERRCODE = '22023';
    END IF;
    FOR one IN
        SELECT e.key AS name, e.value AS units, NULL::text AS given FROM jsonb_each(CASE jsonb_typeof(needs) WHEN 'object' THEN needs ELSE '{}' END) e
        UNION ALL
        SELECT split_part(e #>> '{}', '=', 1), CASE WHEN position('=' IN e #>> '{}') = 0 THEN to_jsonb(1)
                ELSE to_jsonb(substring(e #>> '{}' FROM position('=' IN e #>> '{}') + 1)) END, e #>> '{}'
        FROM jsonb_array_elements(CASE jsonb_typeof(needs) WHEN 'array' THEN needs ELSE '[]' END) e LOOP
        n := n + 1;
        IF one.given IS NOT NULL AND ((one.units #>> '{}') !~ '^[0-9]{1,9}$' OR (one.units #>> '{}')::bigint < 1 OR one.name = '') THEN
            RAISE EXCEPTION 'the need is "%"; write a resource''s name, or NAME=UNITS with a whole number above 0', left(one.given, 64) USING ERRCODE = '22023';
        END IF;
        one.name := lower($schema$.check_name_('needs', one.name, 192) COLLATE "C");
        IF (one.units #>> '{}') ~ '^[0-9]{1,9}$' THEN units := (one.units #>> '{}')::bigint; ELSE units := NULL; END IF;
        IF coalesce(units, 0) NOT BETWEEN 1 AND 10000 THEN
            RAISE EXCEPTION 'needs asks for % units of "%"; it must be between 1 and 10000', left(one.units #>> '{}', 64), one.name USING ERRCODE = '22023';
        END IF;
        checked := checked || jsonb_build_object(one.name, units + coalesce((checked ->> one.name)::bigint, 0));
    END LOOP;
    IF n > 16 THEN RAISE EXCEPTION 'needs names % resources; the limit is 16', n USING ERRCODE = '22023'; END IF;
    RETURN checked;
END $$;

CREATE FUNCTION $schema$.check_labels_(labels jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE label jsonb;
BEGIN
    IF labels IS NULL THEN RETURN NULL; END IF;
    IF jsonb_typeof(labels) <> 'array' THEN RAISE EXCEPTION 'labels is %; give an array of texts', left(labels::text, 64) USING ERRCODE = '22023'; END IF;
    IF jsonb_array_length(labels) > 16 THEN
        RAISE EXCEPTION 'labels has % labels; the limit is 16', jsonb_array_length(labels) USING ERRCODE = '22023';
    END IF;
    FOR label IN SELECT e FROM jsonb_array_elements(labels) e LOOP
        IF jsonb_typeof(label) <> 'string' THEN
            RAISE EXCEPTION 'labels has %; give an array of texts', left(label::text, 64) USING ERRCODE = '22023';
        END IF;
        PERFORM $schema$.check_name_('labels', label #>> '{}', 64);
    END LOOP;
    RETURN labels;
END $$;

-- Needs and labels as a lane has them: on one line, by names, '' for none.
CREATE FUNCTION $schema$.placement_text_(needs jsonb, labels jsonb) RETURNS text LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce('{' || nullif(concat_ws(',',
        (SELECT '"needs":{' || string_agg(to_jsonb(n.key)::text || ':' || n.value::text, ',' ORDER BY n.key COLLATE "C") || '}'
         FROM jsonb_each(coalesce(needs, '{}')) n),
        (SELECT '"labels":[' || string_agg(to_jsonb(l.label)::text, ',' ORDER BY l.label COLLATE "C") || ']'
         FROM (SELECT DISTINCT e AS label FROM jsonb_array_elements_text(coalesce(labels, '[]')) e) l)), '') || '}', '')
$$;

-- ["7", "9"], or {"on": ["7", "9"], "on_failure": …, "any": …, "need_success": …}; answers the second with all members.
CREATE FUNCTION $schema$.check_after_(given jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE a jsonb; ids bigint[]; odd text; policy int;
BEGIN
    IF given IS NULL THEN RETURN NULL; END IF;
    a := CASE jsonb_typeof(given) WHEN 'object' THEN given ELSE jsonb_build_object('on', given) END;
    PERFORM $schema$.check_members_('after', a, '{on,on_failure,any,need_success}');
    IF jsonb_typeof(a -> 'on') IS DISTINCT FROM 'array' THEN
        RAISE EXCEPTION 'after is %; give an array of ids, or {"on": [ids], "on_failure": …, "any": …, "need_success": …}', left(given::text, 64)
            USING ERRCODE = '22023';
    END IF;
    IF jsonb_array_length(a -> 'on') > 10000 THEN
        RAISE EXCEPTION 'after names % tasks; the limit is 10000: wait for tasks that wait for some each', jsonb_array_length(a -> 'on') USING ERRCODE = '22023';
    END IF;
    SELECT e #>> '{}' INTO odd FROM jsonb_array_elements(a -> 'on') e WHERE (e #>> '{}') ~ '^(-[0-9]+|0+)$' LIMIT 1;
    IF odd IS NOT NULL THEN RAISE EXCEPTION 'after has the id %; ids are 1 and more', left(odd, 64) USING ERRCODE = '22023'; END IF;
    ids := ARRAY(SELECT $schema$.check_whole_('after', e.value, 1, 9223372036854775807)
                 FROM jsonb_array_elements(a -> 'on') WITH ORDINALITY e(value, n) ORDER BY e.n);
    SELECT u::text INTO odd FROM unnest(ids) u GROUP BY u HAVING count(*) > 1 LIMIT 1;
    IF odd IS NOT NULL THEN RAISE EXCEPTION 'after names task % twice', odd USING ERRCODE = '22023'; END IF;
    policy := array_position('{wait_for_all,fail_fast,cancel_rest}', coalesce(a ->> 'on_failure', 'wait_for_all')) - 1;
    IF policy IS NULL THEN
        RAISE EXCEPTION 'after.on_failure is %; use wait_for_all, fail_fast or cancel_rest', left((a -> 'on_failure')::text, 64) USING ERRCODE = '22023';
    END IF;
    a := jsonb_build_object('on', to_jsonb(ids), 'on_failure', policy, 'any', $schema$.check_flag_('after.any', a -> 'any', false),
        'need_success', $schema$.check_flag_('after.need_success', a -> 'need_success', true));
    IF a -> 'any' = 'true' AND policy <> 0 THEN
        RAISE EXCEPTION 'after.on_failure is given together with any, where one failure does not matter; leave it out' USING ERRCODE = '22023';
    END IF;
    RETURN a;
END $$;

-- Which of the tasks are there, and how they ended. Those that are not finished cannot end before this transaction does, and
-- whoever ends them then looks for who waits for them.
CREATE FUNCTION $schema$.hold_(tasks bigint[]) RETURNS TABLE(task bigint, tenant bigint, ended smallint) LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE open bigint[] := ARRAY(SELECT u FROM unnest(tasks) u ORDER BY u); one record; found bigint[];
BEGIN
    FOR look IN 1 .. 20 LOOP
        found := '{}';
        FOR one IN
            WITH l AS MATERIALIZED (SELECT v.id, v.flags, v.lane FROM $schema$.live v WHERE v.id = ANY (open) ORDER BY v.id FOR KEY SHARE),
            u AS (UPDATE $schema$.live z SET flags = (z.flags | 128)::smallint WHERE z.id = ANY (ARRAY(SELECT l.id FROM l WHERE (l.flags & 128) = 0)))
            SELECT l.id, k.tenant AS owner FROM l JOIN $schema$.lane k ON k.id = l.lane LOOP
            found := found || one.id;
            task := one.id; tenant := one.owner; ended := NULL;
            RETURN NEXT;
        END LOOP;
        open := ARRAY(SELECT u FROM unnest(open) u WHERE u <> ALL (found) ORDER BY u);
        EXIT WHEN open = '{}';
        found := '{}';
        FOR one IN
            SELECT h.id, k.tenant AS owner, h.state FROM $schema$.history h JOIN $schema$.lane k ON k.id = h.lane
            WHERE h.id = ANY (open) AND h.part = ANY (ARRAY(
                SELECT f.part FROM $schema$.leaf f WHERE f.parent = 'history' AND f.part / 16 IN (
                    SELECT $schema$.period_(u) + near FROM unnest(open) u CROSS JOIN generate_series(-1, 1) near))) LOOP
            found := found || one.id;
            task := one.id; tenant := one.owner; ended := one.state;
            RETURN NEXT;
        END LOOP;
        -- What came between the two looks is looked for again; what is nowhere is not there.
        open := ARRAY(SELECT v.id FROM $schema$.live v WHERE v.id = ANY (open) AND v.id <> ALL (found) ORDER BY v.id);
        EXIT WHEN open = '{}';
    END LOOP;
    IF open <> '{}' THEN RAISE EXCEPTION 'tasks that are waited for were being moved by others; try again' USING ERRCODE = '40001'; END IF;
END $$;

CREATE FUNCTION $schema$.note_(task bigint, tenant_id bigint, at timestamptz, event int, before int, after int, who text, why text) RETURNS void
    LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO $schema$.audit(part, seq, at, tenant, event, from_state, to_state, attempt, generation, actor, reason, span, ids)
    VALUES ($schema$.day_(at), nextval('$schema$.audit_seq'), at, tenant_id, event, before, after, 0, 1, who, why, int8range(task, task, '[]'), ARRAY[task])
$$;

-- A new task begins to wait; or does not, if what it is to wait for is over: then 'goes' (it may start), or 'cancelled'.
-- `new` is as it is to be stored, which is done here where it is to wait or to end.
CREATE FUNCTION $schema$.begin_wait_(new $schema$.live, after jsonb, at timestamptz, tenant_id bigint) RETURNS text LANGUAGE plpgsql
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
    verdict := CASE WHEN any_one AND pending + failed < total THEN 'goes' WHEN failed > 0 AND NOT any_one AND on_failure <> 0 THEN 'failed'
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

-- As before, but it keeps what others may have begun meanwhile, and leaves alone what has started.
CREATE OR REPLACE FUNCTION $schema$.replace_waiting_(wanted $schema$.live, at timestamptz, longest interval, tenant_id bigint, who text) RETURNS boolean LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    old $schema$.live%ROWTYPE; was $schema$.past%ROWTYPE; due timestamptz; flag int := (wanted.flags & ~4096) | 2; taken boolean := false;
BEGIN
    FOR look IN 1 .. 20 LOOP
        SELECT * INTO old FROM $schema$.live v WHERE v.id = wanted.id;
        -- It has started: it is on its way, between two of its waits.
        IF (old.flags & (256 | 512)) <> 0 THEN RETURN false; END IF;
        DELETE FROM $schema$.ready r WHERE r.lane = old.lane AND r.pos = old.pos AND r.task = wanted.id AND (r.flags & (256 | 512)) = 0;
        taken := FOUND;
        EXIT WHEN taken;
        DELETE FROM $schema$.later w WHERE w.task = wanted.id AND (w.flags & (256 | 512)) = 0;
        taken := FOUND;
        EXIT WHEN taken;
        -- One that has just become due went from where the second look would have found it to where the first had looked.
        IF NOT EXISTS (SELECT FROM $schema$.live v JOIN $schema$.ready r ON r.lane = v.lane AND r.pos = v.pos WHERE v.id = wanted.id)
            AND NOT EXISTS (SELECT FROM $schema$.later w WHERE w.task = wanted.id) THEN
            RETURN false;
        END IF;
    END LOOP;
    IF NOT taken THEN RAISE EXCEPTION 'task % is being moved by others; try again', wanted.id USING ERRCODE = '40001'; END IF;
    IF (SELECT l.suspect FROM $schema$.live v JOIN $schema$.lane l ON l.id = v.lane WHERE v.id = wanted.id) THEN
        wanted.lane := (SELECT $schema$.lane_of_(q.name, l.type, l.tenant, l.priority, true, l.placement)
                        FROM $schema$.lane l JOIN $schema$.queue q ON q.id = l.queue WHERE l.id = wanted.lane);
    END IF;
    due := least(wanted.due_at, old.created_at + longest);
    -- Somebody may have begun to wait for it meanwhile. What it waited for, and whose turn it is, is part of its history.
    SELECT flag | (v.flags & (128 | 1024 | 4096)) INTO flag FROM $schema$.live v WHERE v.id = wanted.id FOR NO KEY UPDATE;
    SELECT * INTO was FROM $schema$.past p WHERE p.task = wanted.id;
    INSERT INTO $schema$.past(task, state, attempt, claim_no, generation, crash_count, updated_at) VALUES (wanted.id, 0, 0, 0, 1, 0, at)
    ON CONFLICT ON CONSTRAINT past_pkey DO UPDATE SET updated_at = excluded.updated_at;
    UPDATE $schema$.live v SET lane = wanted.lane, policy = wanted.policy, flags = flag, explicit = wanted.explicit, timeout_ms = wanted.timeout_ms,
        start_by = wanted.start_by, tags = wanted.tags, input = wanted.input, due_at = due
    WHERE v.id = wanted.id;
    IF due <= at THEN
        INSERT INTO $schema$.ready(lane, pos, task, flags) VALUES (wanted.lane, old.pos, wanted.id, flag | 1);
    ELSE
        INSERT INTO $schema$.later(due, task, lane, flags) VALUES (due, wanted.id, wanted.lane, flag | 1);
    END IF;
    PERFORM $schema$.make_leaf_('audit', $schema$.day_(at));
    INSERT INTO $schema$.audit(part, seq, at, tenant, event, from_state, to_state, attempt, generation, actor, reason, span, ids)
    VALUES ($schema$.day_(at), nextval('$schema$.audit_seq'), at, tenant_id, 17, coalesce(was.state, 0), coalesce(was.state, 0), coalesce(was.attempt, 0),
        coalesce(was.generation, 1), who, 'replaced by a new request', int8range(wanted.id, wanted.id, '[]'), ARRAY[wanted.id]);
    IF (old.flags & 4096) <> 0 THEN PERFORM $schema$.order_park_(ARRAY[wanted.id]); END IF;
    RETURN true;
END $$;

CREATE OR REPLACE FUNCTION $schema$.submit(request jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    r jsonb := request;
    field text;
    known $schema$.task_type%ROWTYPE;
    tenant_id bigint; type_name text; queue_name text; prio int; timeout_ms bigint; delay_ms bigint; run_at timestamptz; start_by timestamptz;
    tag_list text[]; idem text; uniq text; who text; body text; parent_id bigint; hash text; task bigint; lane_id int; policy_id int; flag int; due timestamptz;
    place bigint; at timestamptz; idem_row $schema$.idem_key%ROWTYPE; existing bigint; queue_id int; most bigint; mask int;
    policy text; throttle_name text; throttle_ms bigint; throttled bigint;
    debounce_name text; wait_ms bigint; longest_ms bigint; waiting bigint; replaced boolean := false; wanted $schema$.live%ROWTYPE;
    needs jsonb; labels jsonb; line text; head_policy int; after jsonb; going text := 'goes'; parked boolean := false; place_text text;
BEGIN
    -- In an older snapshot a key that somebody else has just used would be overlooked.
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION 'the transaction is %: BEGIN it with ISOLATION LEVEL READ COMMITTED', current_setting('transaction_isolation')
            USING ERRCODE = '25000';
    END IF;
    IF jsonb_typeof(r) IS DISTINCT FROM 'object' THEN RAISE EXCEPTION 'the request is not an object' USING ERRCODE = '22023'; END IF;
    SELECT k INTO field FROM jsonb_object_keys(r) k WHERE k NOT IN ('type', 'input', 'tenant', 'queue', 'priority', 'retry', 'timeout', 'delay', 'run_at',
        'start_by', 'tags', 'idempotency_key', 'unique_key', 'unique_policy', 'debounce', 'throttle', 'actor', 'parent', 'notify', 'after', 'needs', 'labels',
        'order_key', 'on_failed_head') LIMIT 1;
    IF field = 'id' THEN
        RAISE EXCEPTION 'id is given; it is assigned here: leave it out, and give an idempotency_key if the submit may be repeated' USING ERRCODE = '22023';
    END IF;
    IF field IS NOT NULL THEN
        RAISE EXCEPTION 'unknown field "%"; the fields are type, input, tenant, queue, priority, retry, timeout, delay, run_at, start_by, tags, idempotency_key, unique_key, unique_policy, debounce, throttle, after, needs, labels, order_key, on_failed_head, parent, actor, notify', left(field, 64)
            USING ERRCODE = '22023';
    END IF;
    -- An explicit null is the same as nothing, but for the input.
    r := jsonb_strip_nulls(r - 'input') || CASE WHEN r ? 'input' THEN jsonb_build_object('input', r -> 'input') ELSE '{}' END;

    IF NOT r ? 'type' THEN RAISE EXCEPTION 'type is missing; say what kind of task it is' USING ERRCODE = '22023'; END IF;
    type_name := $schema$.check_name_('type', r ->> 'type', 128);
    tenant_id := coalesce($schema$.check_whole_('tenant', r -> 'tenant', 1, 9223372036854775807), 1);
    parent_id := $schema$.check_whole_('parent', r -> 'parent', 1, 9223372036854775807);
    prio := $schema$.check_whole_('priority', r -> 'priority', 0, 255);
    IF jsonb_typeof(r -> 'notify') <> 'boolean' THEN
        RAISE EXCEPTION 'notify is %; give true or false', left((r -> 'notify')::text, 64) USING ERRCODE = '22023';
    END IF;
    queue_name := $schema$.check_name_('queue', r ->> 'queue', 128);
    timeout_ms := $schema$.check_duration_('timeout', r -> 'timeout', 31536000000);
    delay_ms := $schema$.check_duration_('delay', r -> 'delay', 316224000000);
    run_at := $schema$.check_instant_('run_at', r ->> 'run_at');
    start_by := $schema$.check_instant_('start_by', r ->> 'start_by');
    IF delay_ms IS NOT NULL AND run_at IS NOT NULL THEN RAISE EXCEPTION 'delay and run_at are both given; give one of them' USING ERRCODE = '22023'; END IF;
    IF start_by <= run_at THEN RAISE EXCEPTION 'start_by is not after run_at; it could never start' USING ERRCODE = '22023'; END IF;
    tag_list := $schema$.check_tags_(r -> 'tags');
    idem := nullif($schema$.check_text_('idempotency_key', r ->> 'idempotency_key', 256), '');
    uniq := nullif($schema$.check_text_('unique_key', r ->> 'unique_key', 256), '');
    -- Who is logged in is always told; whom it says it asks for comes after.
    who := left('sql:' || session_user || coalesce(' ' || nullif($schema$.check_text_('actor', r ->> 'actor', 128), ''), ''), 128);
    IF coalesce(r ->> 'unique_policy', 'return_existing') NOT IN ('return_existing', 'replace_if_not_started', 'error') THEN
        RAISE EXCEPTION 'unique_policy is "%"; use return_existing, replace_if_not_started or error', left(r ->> 'unique_policy', 64) USING ERRCODE = '22023';
    END IF;
    policy := $schema$.check_retry_(r -> 'retry');
    PERFORM $schema$.check_members_('throttle', r -> 'throttle', '{key,period}');
    PERFORM $schema$.check_members_('debounce', r -> 'debounce', '{key,wait,max_wait}');
    IF r ? 'throttle' THEN
        throttle_name := nullif($schema$.check_text_('throttle.key', r #>> '{throttle,key}', 256), '');
        throttle_ms := $schema$.check_duration_('throttle.period', r #> '{throttle,period}', 316224000000);
        IF throttle_name IS NULL OR coalesce(throttle_ms, 0) = 0 THEN
            RAISE EXCEPTION 'throttle is %; give {"key": …, "period": …}', left((r -> 'throttle')::text, 64) USING ERRCODE = '22023';
        END IF;
    END IF;
    IF r ? 'debounce' THEN
        debounce_name := nullif($schema$.check_text_('debounce.key', r #>> '{debounce,key}', 256), '');
        wait_ms := $schema$.check_duration_('debounce.wait', r #> '{debounce,wait}', 316224000000);
        longest_ms := nullif($schema$.check_duration_('debounce.max_wait', r #> '{debounce,max_wait}', 316224000000), 0);
        IF debounce_name IS NULL OR coalesce(wait_ms, 0) = 0 THEN
            RAISE EXCEPTION 'debounce is %; give {"key": …, "wait": …} and perhaps "max_wait"', left((r -> 'debounce')::text, 64) USING ERRCODE = '22023';
        END IF;
        IF longest_ms < wait_ms THEN
            RAISE EXCEPTION 'debounce.max_wait is % ms; it must not be below wait (% ms), or be zero for no bound', longest_ms, wait_ms USING ERRCODE = '22023';
        END IF;
        IF uniq IS NOT NULL THEN RAISE EXCEPTION 'debounce and unique_key are both given; give one of them' USING ERRCODE = '22023'; END IF;
        IF delay_ms IS NOT NULL OR run_at IS NOT NULL THEN
            RAISE EXCEPTION 'debounce is given together with delay or run_at; debounce sets the due time itself' USING ERRCODE = '22023';
        END IF;
    END IF;
    needs := $schema$.check_needs_(r -> 'needs');
    labels := $schema$.check_labels_(r -> 'labels');
    line := nullif($schema$.check_text_('order_key', r ->> 'order_key', 256), '');
    head_policy := CASE coalesce(r ->> 'on_failed_head', 'block') WHEN 'block' THEN 0 WHEN 'skip' THEN 1 WHEN 'dead_letter' THEN 2 WHEN 'dead' THEN 2 END;
    IF head_policy IS NULL THEN
        RAISE EXCEPTION 'on_failed_head is %; use block, skip or dead_letter', left((r -> 'on_failed_head')::text, 64) USING ERRCODE = '22023';
    END IF;
    after := $schema$.check_after_(r -> 'after');
    IF after IS NOT NULL AND debounce_name IS NOT NULL THEN RAISE EXCEPTION 'after and debounce cannot be given together' USING ERRCODE = '22023'; END IF;
    IF after IS NOT NULL AND uniq IS NOT NULL AND r ->> 'unique_policy' = 'replace_if_not_started' THEN
        RAISE EXCEPTION 'after and the unique policy replace_if_not_started cannot be given together: cancel the other task instead' USING ERRCODE = '22023';
    END IF;
    body := coalesce((r -> 'input')::text, 'null');
    IF octet_length(body) > 1048576 THEN
        RAISE EXCEPTION 'input is % bytes; the limit is 1048576 bytes: store large data elsewhere and pass a reference', octet_length(body) USING ERRCODE = '22023';
    END IF;

    -- The same digest as everywhere, so that a key means the same through every door.
    IF idem IS NOT NULL THEN
        hash := encode(sha256(convert_to($schema$.digest_line_('tenant', tenant_id::text) || $schema$.digest_line_('type', type_name)
            || $schema$.digest_line_('input', $schema$.digest_json_(body::jsonb)) || $schema$.digest_line_('queue', queue_name) || $schema$.digest_line_('priority', prio::text)
            || $schema$.digest_line_('retry', policy)
            || $schema$.digest_line_('timeout', timeout_ms::text) || $schema$.digest_line_('delay', delay_ms::text)
            || $schema$.digest_line_('run_at', (extract(epoch FROM run_at) * 1000000)::bigint::text)
            || $schema$.digest_line_('start_by', (extract(epoch FROM start_by) * 1000000)::bigint::text)
            || coalesce((SELECT string_agg($schema$.digest_line_('tag', t), '' ORDER BY t COLLATE "C") FROM unnest(tag_list) t), '')
            || CASE WHEN debounce_name IS NULL THEN '' ELSE $schema$.digest_line_('debounce.wait', wait_ms::text)
                || $schema$.digest_line_('debounce.max_wait', coalesce(longest_ms, 0)::text) END
            || $schema$.digest_line_('throttle.period', throttle_ms::text) || $schema$.digest_line_('parent', parent_id::text)
            || CASE WHEN after IS NULL THEN '' ELSE
                coalesce((SELECT string_agg($schema$.digest_line_('after', e), '' ORDER BY n) FROM jsonb_array_elements_text(after -> 'on') WITH ORDINALITY x(e, n)), '')
                || $schema$.digest_line_('after.on_failure', after ->> 'on_failure') || $schema$.digest_line_('after.any', (after -> 'any' = 'true')::int::text)
                || $schema$.digest_line_('after.need_success', (after -> 'need_success' = 'true')::int::text) END
            || CASE WHEN needs IS NULL THEN '' ELSE $schema$.digest_line_('needs', $schema$.placement_text_(needs, NULL)) END
            || CASE WHEN labels IS NULL THEN '' ELSE $schema$.digest_line_('labels', $schema$.placement_text_(NULL, labels)) END
            || CASE WHEN line IS NULL THEN '' ELSE $schema$.digest_line_('order_key', line) || $schema$.digest_line_('on_failed_head', head_policy::text) END,
            'UTF8')), 'hex');
    END IF;

    IF idem IS NOT NULL OR uniq IS NOT NULL OR throttle_name IS NOT NULL OR debounce_name IS NOT NULL THEN
        PERFORM pg_advisory_xact_lock(k.h) FROM (
            SELECT DISTINCT hashtextextended('$schema_name$ key ' || n, 7004) AS h FROM (VALUES
                (CASE WHEN idem IS NOT NULL THEN '3 ' || tenant_id || '  ' || idem END),
                (CASE WHEN debounce_name IS NOT NULL THEN '1 ' || tenant_id || ' ' || type_name || ' ' || debounce_name END),
                (CASE WHEN throttle_name IS NOT NULL THEN '2 ' || tenant_id || ' ' || type_name || ' ' || throttle_name END),
                (CASE WHEN uniq IS NOT NULL THEN '0 ' || tenant_id || ' ' || type_name || ' ' || uniq END)) v(n)
            WHERE n IS NOT NULL ORDER BY 1) k;
    END IF;
    at := $schema$.now_();
    IF idem IS NOT NULL THEN
        SELECT * INTO idem_row FROM $schema$.idem_key i WHERE i.tenant = tenant_id AND i.key = idem AND i.expires_at > at;
        IF idem_row.task IS NOT NULL AND idem_row.hash = hash THEN RETURN jsonb_build_object('id', idem_row.task::text, 'kind', 'existing'); END IF;
        IF idem_row.task IS NOT NULL THEN
            RAISE EXCEPTION 'idempotency_key "%" stands for task % with another request: use a new key, or repeat the same request', idem, idem_row.task USING ERRCODE = '23505';
        END IF;
    END IF;
    IF throttle_name IS NOT NULL THEN
        SELECT k.task INTO throttled FROM $schema$.throttle_key k WHERE k.tenant = tenant_id AND k.type = type_name AND k.key = throttle_name AND k.until > at;
    END IF;
    IF uniq IS NOT NULL AND throttled IS NULL THEN
        SELECT k.task INTO existing FROM $schema$.live_key k WHERE k.tenant = tenant_id AND k.kind = 0 AND k.type = type_name AND k.key = uniq;
        IF existing IS NOT NULL AND r ->> 'unique_policy' = 'error' THEN
            RAISE EXCEPTION 'task % with unique_key "%" is not finished: wait for it or cancel it', existing, uniq USING ERRCODE = '23505';
        END IF;
    END IF;

    existing := coalesce(throttled, existing);
    IF throttled IS NULL AND debounce_name IS NOT NULL THEN
        SELECT k.task INTO waiting FROM $schema$.live_key k WHERE k.tenant = tenant_id AND k.kind = 1 AND k.type = type_name AND k.key = debounce_name;
    ELSIF throttled IS NULL AND r ->> 'unique_policy' = 'replace_if_not_started' THEN
        waiting := existing;
    END IF;
    IF existing IS NULL OR waiting IS NOT NULL THEN
        -- A type that is being registered just now is not waited for, nor kept waiting: a task that was accepted before
        -- its type was known is found by the next registration or housekeeping.
        SELECT * INTO known FROM $schema$.task_type d WHERE d.name = type_name;
        mask := (queue_name IS NOT NULL)::int + (prio IS NOT NULL)::int * 2 + (policy IS NOT NULL)::int * 4 + (timeout_ms IS NOT NULL)::int * 8;
        queue_name := coalesce(queue_name, known.queue, 'default');
        prio := coalesce(prio, known.priority, 128);
        timeout_ms := nullif(coalesce(timeout_ms, known.timeout_ms, 0), 0);
        -- A new queue would be visible to nobody until the caller commits, and whoever wants the same one would wait for that.
        IF NOT EXISTS (SELECT FROM $schema$.queue q WHERE q.name = queue_name) THEN
            RAISE EXCEPTION 'queue "%" does not exist; make it with "stint queue cap % none", or submit to it through the program once', queue_name, queue_name
                USING ERRCODE = '22023';
        END IF;
        place_text := $schema$.placement_text_(coalesce(needs, nullif(known.placement, '')::jsonb -> 'needs'),
            coalesce(labels, nullif(known.placement, '')::jsonb -> 'labels'));
        lane_id := $schema$.lane_of_(queue_name, type_name, tenant_id, prio, false, place_text);
        policy_id := $schema$.policy_of_(coalesce(policy, known.retry, '{}'));
        flag := (uniq IS NOT NULL OR debounce_name IS NOT NULL)::int * 2 + (timeout_ms IS NOT NULL)::int * 8 + (start_by IS NOT NULL)::int * 16 + (known.name IS NULL)::int * 32
            + (line IS NOT NULL)::int * 4096;
        due := coalesce(run_at, at + coalesce(wait_ms, delay_ms, 0) * interval '1 millisecond');
    END IF;
    IF waiting IS NOT NULL THEN
        wanted.id := waiting; wanted.due_at := due; wanted.lane := lane_id; wanted.policy := policy_id; wanted.flags := flag; wanted.explicit := mask;
        wanted.timeout_ms := timeout_ms; wanted.start_by := start_by; wanted.tags := tag_list; wanted.input := body;
        replaced := $schema$.replace_waiting_(wanted, at, longest_ms * interval '1 millisecond', tenant_id, who);
        IF replaced THEN existing := waiting; END IF;
    END IF;
    IF existing IS NULL THEN
        SELECT q.id, q.cap INTO queue_id, most FROM $schema$.queue q WHERE q.name = queue_name;
        IF most IS NOT NULL THEN
            PERFORM FROM $schema$.queue q WHERE q.id = queue_id FOR NO KEY UPDATE;
            IF $schema$.waiting_(queue_id, most) >= most THEN
                RAISE EXCEPTION 'queue "%" is full: its cap is % waiting tasks; try later or raise the cap', queue_name, most USING ERRCODE = '53400';
            END IF;
        END IF;
        task := nextval('$schema$.task_id_seq');
        PERFORM pg_current_xact_id();
        place := nextval('$schema$.pos_seq');
        wanted := ROW(task, place, at, due, lane_id, policy_id, flag, mask, timeout_ms, parent_id, start_by, tag_list, uniq, idem, debounce_name, body);
        -- Housekeeping makes them a week ahead.
        PERFORM $schema$.make_leaf_('audit', $schema$.day_(at));
        PERFORM $schema$.note_(task, tenant_id, at, 0, NULL, 0, who, NULL);
        IF after IS NOT NULL THEN
            going := $schema$.begin_wait_(wanted, after, at, tenant_id);
            flag := flag | 1024;
            wanted.flags := flag;
        END IF;
        IF going <> 'cancelled' THEN INSERT INTO $schema$.live SELECT (wanted).*; END IF;
        IF going = 'goes' THEN
            -- It has a past if it was to wait and that was over at once.
            flag := flag | CASE WHEN after IS NULL THEN 0 ELSE (SELECT count(*)::int FROM $schema$.past p WHERE p.task = wanted.id) END;
            IF due <= at THEN
                INSERT INTO $schema$.ready(lane, pos, task, flags) VALUES (lane_id, place, task, flag);
            ELSE
                INSERT INTO $schema$.later(due, task, lane, flags) VALUES (due, task, lane_id, flag);
            END IF;
        END IF;
        IF uniq IS NOT NULL AND going <> 'cancelled' THEN
            INSERT INTO $schema$.live_key(tenant, kind, type, key, task) VALUES (tenant_id, 0, type_name, uniq, task);
        END IF;
        IF debounce_name IS NOT NULL THEN
            INSERT INTO $schema$.live_key(tenant, kind, type, key, task) VALUES (tenant_id, 1, type_name, debounce_name, task)
            ON CONFLICT ON CONSTRAINT live_key_pkey DO UPDATE SET task = excluded.task;
        END IF;
        IF line IS NOT NULL AND going <> 'cancelled' THEN
            parked := EXISTS (SELECT FROM $schema$.order_join_(ARRAY[task], ARRAY[tenant_id], ARRAY[line], ARRAY[head_policy::smallint]));
        END IF;
    END IF;
    -- Something was created or changed.
    IF existing IS NULL OR replaced THEN
        IF throttle_name IS NOT NULL THEN
            INSERT INTO $schema$.throttle_key(tenant, type, key, task, until)
            VALUES (tenant_id, type_name, throttle_name, coalesce(existing, task), at + throttle_ms * interval '1 millisecond')
            ON CONFLICT ON CONSTRAINT throttle_key_pkey DO UPDATE SET task = excluded.task, until = excluded.until;
        END IF;
        IF (r -> 'notify') = 'true' AND going = 'goes' AND NOT parked THEN PERFORM pg_notify('$schema_name$_task_available', queue_name); END IF;
    END IF;
    IF idem IS NOT NULL THEN
        INSERT INTO $schema$.idem_key(tenant, key, task, hash, expires_at) VALUES (tenant_id, idem, coalesce(existing, task), hash, at + interval '7 days')
        ON CONFLICT ON CONSTRAINT idem_key_pkey DO UPDATE SET task = excluded.task, hash = excluded.hash, expires_at = excluded.expires_at;
    END IF;
    RETURN jsonb_build_object('id', coalesce(existing, task)::text, 'kind', CASE WHEN throttled IS NOT NULL THEN 'throttled' WHEN replaced THEN 'replaced' WHEN existing IS NULL THEN 'created' ELSE 'existing' END);
END $$;

-- Patterns are looked for by everybody who claims, and there are few of them among the resources that they make.
CREATE INDEX resource_pattern ON $schema$.resource(name) WHERE name LIKE '%*';
CREATE INDEX resource_of_pattern ON $schema$.resource(pattern) WHERE pattern <> '';

-- A tree is cancelled through those of it that are finished.
CREATE INDEX history_parent ON $schema$.history(parent) WHERE parent IS NOT NULL;
