-- Submitting from any language, inside the caller's own transaction:
--
--   SELECT $schema$.submit('{"type": "mail.send", "input": {"to": "ann"}, "idempotency_key": "order 77"}');
--
-- Answers {"id": "…", "kind": "created" | "existing" | "replaced" | "throttled"}. What is wrong is an exception that names the field;
-- so are a conflict and a full queue, because a producer that overlooks them would lose the task.
--
-- The caller's transaction may stay open for long, so nothing here keeps others waiting who do not use the same key:
-- no row that somebody else may want to make, no lock on the type. Only a queue with a cap is entered one by one.

CREATE FUNCTION $schema$.check_name_(field text, value text, most int) RETURNS text LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF value = '' THEN RAISE EXCEPTION '% is empty; give it a name', field USING ERRCODE = '22023'; END IF;
    IF octet_length(value) > most THEN
        RAISE EXCEPTION '% is % bytes; the limit is % bytes', field, octet_length(value), most USING ERRCODE = '22023';
    END IF;
    IF value !~ '^[A-Za-z0-9._:/@+-]+$' THEN
        RAISE EXCEPTION '% is "%"; use letters, digits and . _ - : / @ +', field, left(value, 64) USING ERRCODE = '22023';
    END IF;
    RETURN value;
END $$;

CREATE FUNCTION $schema$.check_text_(field text, value text, most int) RETURNS text LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF octet_length(value) > most THEN
        RAISE EXCEPTION '% is % bytes; the limit is % bytes', field, octet_length(value), most USING ERRCODE = '22023';
    END IF;
    IF value ~ '[\x01-\x1f\x7f]' THEN
        RAISE EXCEPTION '% must not have control characters', field USING ERRCODE = '22023';
    END IF;
    RETURN value;
END $$;

-- Ids are texts in answers, since not every language has whole numbers of their size; so they are taken as texts too.
CREATE FUNCTION $schema$.check_whole_(field text, value jsonb, lowest bigint, highest bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF value IS NULL THEN RETURN NULL; END IF;
    IF (CASE WHEN (value #>> '{}') ~ '^-?[0-9]{1,19}$' THEN (value #>> '{}')::numeric NOT BETWEEN lowest AND highest ELSE true END) THEN
        RAISE EXCEPTION '% is %; give a whole number between % and %', field, left(value::text, 64), lowest, highest USING ERRCODE = '22023';
    END IF;
    RETURN (value #>> '{}')::bigint;
END $$;

CREATE FUNCTION $schema$.check_members_(field text, value jsonb, known text[]) RETURNS void LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE stranger text;
BEGIN
    IF jsonb_typeof(value) IS DISTINCT FROM 'object' THEN RETURN; END IF;
    SELECT k INTO stranger FROM jsonb_object_keys(value) k WHERE k <> ALL (known) LIMIT 1;
    IF stranger IS NOT NULL THEN
        RAISE EXCEPTION '%.% is unknown; the fields are %', field, left(stranger, 64), array_to_string(known, ', ') USING ERRCODE = '22023';
    END IF;
END $$;

CREATE FUNCTION $schema$.check_duration_(field text, value jsonb, most bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE ms bigint;
BEGIN
    IF value IS NULL THEN RETURN NULL; END IF;
    BEGIN
        ms := CASE jsonb_typeof(value) WHEN 'number' THEN value::text::bigint
            ELSE (extract(epoch FROM (value #>> '{}')::interval) * 1000)::bigint END;
    EXCEPTION WHEN OTHERS THEN
        RAISE EXCEPTION '% is %; give milliseconds, or a text such as "90s" or "5 minutes"', field, value USING ERRCODE = '22023';
    END;
    IF ms < 0 OR ms > most THEN
        RAISE EXCEPTION '% is % ms; it must be between 0 and % ms', field, ms, most USING ERRCODE = '22023';
    END IF;
    RETURN ms;
END $$;

CREATE FUNCTION $schema$.check_instant_(field text, value text) RETURNS timestamptz LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE at timestamptz;
BEGIN
    IF value IS NULL THEN RETURN NULL; END IF;
    BEGIN
        at := value::timestamptz;
    EXCEPTION WHEN OTHERS THEN
        RAISE EXCEPTION '% is "%"; give an instant such as "2026-01-31T12:00:00Z"', field, left(value, 64) USING ERRCODE = '22023';
    END;
    IF at < '1970-01-01Z' OR at > '9999-12-31Z' THEN
        RAISE EXCEPTION '% is "%"; it must lie in the years 1970 to 9999', field, left(value, 64) USING ERRCODE = '22023';
    END IF;
    RETURN at;
END $$;

CREATE FUNCTION $schema$.check_tags_(tags jsonb) RETURNS text[] LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE list text[]; tag text; odd jsonb;
BEGIN
    IF tags IS NULL OR tags = 'null' THEN RETURN NULL; END IF;
    IF jsonb_typeof(tags) <> 'array' THEN RAISE EXCEPTION 'tags is %; give an array of texts', tags USING ERRCODE = '22023'; END IF;
    SELECT e INTO odd FROM jsonb_array_elements(tags) e WHERE jsonb_typeof(e) <> 'string' LIMIT 1;
    IF odd IS NOT NULL THEN RAISE EXCEPTION 'tags has %; give an array of texts', left(odd::text, 64) USING ERRCODE = '22023'; END IF;
    list := ARRAY(SELECT jsonb_array_elements_text(tags));
    IF cardinality(list) > 16 THEN RAISE EXCEPTION 'tags has % tags; the limit is 16', cardinality(list) USING ERRCODE = '22023'; END IF;
    FOREACH tag IN ARRAY list LOOP
        IF tag = '' THEN RAISE EXCEPTION 'tags has an empty tag; leave it out' USING ERRCODE = '22023'; END IF;
        PERFORM $schema$.check_text_('tags', tag, 64);
    END LOOP;
    IF cardinality(list) > (SELECT count(DISTINCT t) FROM unnest(list) t) THEN
        RAISE EXCEPTION 'tags has one tag twice; give each tag once' USING ERRCODE = '22023';
    END IF;
    RETURN nullif(list, '{}');
END $$;

-- One line of the digest by which two requests are "the same"; as in every other door.
CREATE FUNCTION $schema$.digest_line_(name text, value text) RETURNS text LANGUAGE sql IMMUTABLE AS
    $$SELECT CASE WHEN value IS NULL THEN '' ELSE name || ':' || octet_length(value) || ':' || value || E'\n' END$$;

-- A number that need not be whole as the digest has it: by the shortest that reads back the same.
CREATE FUNCTION $schema$.digest_number_(value text) RETURNS text LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS
    $$SELECT CASE WHEN value !~ '[.eE]' THEN value ELSE f.t || CASE WHEN f.t ~ '[.eE]' THEN '' ELSE '.0' END END
      FROM (SELECT value::float8::text AS t) f$$;

-- A number of the input as the digest has it: what it is worth, since 1e3 and 1000 come in here as one. Whole ones by their
-- digits, as far as programs have whole numbers.
CREATE FUNCTION $schema$.digest_worth_(value text) RETURNS text LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS
    $$SELECT CASE WHEN value !~ '[.]' AND value::numeric BETWEEN -9223372036854775808 AND 18446744073709551615 THEN value
        WHEN abs(value::float8) < 9.2e18 AND value::float8 = trunc(value::float8) THEN value::float8::bigint::text
        ELSE $schema$.digest_number_(value || CASE WHEN value ~ '[.]' THEN '' ELSE '.0' END) END$$;

-- JSON as the digest has it: no spaces, members in the order of their names' bytes.
CREATE FUNCTION $schema$.digest_json_(value jsonb) RETURNS text LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN CASE jsonb_typeof(value)
        WHEN 'object' THEN '{' || coalesce((SELECT string_agg(to_jsonb(m.key)::text || ':' || $schema$.digest_json_(m.value), ',' ORDER BY m.key COLLATE "C")
                                            FROM jsonb_each(value) m), '') || '}'
        WHEN 'array' THEN '[' || coalesce((SELECT string_agg($schema$.digest_json_(e.value), ',' ORDER BY e.n)
                                           FROM jsonb_array_elements(value) WITH ORDINALITY e(value, n)), '') || ']'
        WHEN 'number' THEN $schema$.digest_worth_(value::text)
        ELSE value::text END;
END $$;

CREATE FUNCTION $schema$.check_number_(field text, value jsonb, lowest numeric, highest numeric, whole boolean) RETURNS text LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF jsonb_typeof(value) IS DISTINCT FROM 'number' OR (whole AND value::text::numeric <> trunc(value::text::numeric))
        OR value::text::numeric NOT BETWEEN lowest AND highest THEN
        RAISE EXCEPTION '% is %; give a % between % and %', field, left(value::text, 64), CASE WHEN whole THEN 'whole number' ELSE 'number' END, lowest, highest
            USING ERRCODE = '22023';
    END IF;
    -- A factor of 2 is 2.0: it need not be whole.
    RETURN CASE WHEN whole THEN trunc(value::text::numeric)::text ELSE $schema$.digest_number_(value::text || CASE WHEN value::text ~ '[.]' THEN '' ELSE '.0' END) END;
END $$;

-- A retry policy as it is stored and digested everywhere: every field, in one order.
CREATE FUNCTION $schema$.check_retry_(given jsonb) RETURNS text LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    r jsonb := '{"kind": "exponential", "on": "retryable", "max_attempts": 20, "first_delay_ms": 1000, "max_delay_ms": 3600000, "factor": 2.0, "jitter": 0.2}';
    field text; delays text;
BEGIN
    IF given IS NULL THEN RETURN NULL; END IF;
    IF jsonb_typeof(given) <> 'object' THEN RAISE EXCEPTION 'retry is %; give an object', left(given::text, 64) USING ERRCODE = '22023'; END IF;
    SELECT k INTO field FROM jsonb_object_keys(given) k WHERE NOT r ? k AND k <> 'delays_ms' LIMIT 1;
    IF field IS NOT NULL THEN
        RAISE EXCEPTION 'retry.% is unknown; the fields are kind, on, max_attempts, first_delay_ms, max_delay_ms, factor, jitter, delays_ms', left(field, 64)
            USING ERRCODE = '22023';
    END IF;
    r := r || given;
    IF coalesce(r ->> 'kind', '') NOT IN ('exponential', 'fixed', 'list') THEN
        RAISE EXCEPTION 'retry.kind is %; use exponential, fixed or list', left((r -> 'kind')::text, 64) USING ERRCODE = '22023';
    END IF;
    IF coalesce(r ->> 'on', '') NOT IN ('retryable', 'all', 'none') THEN
        RAISE EXCEPTION 'retry.on is %; use retryable, all or none', left((r -> 'on')::text, 64) USING ERRCODE = '22023';
    END IF;
    IF jsonb_typeof(coalesce(r -> 'delays_ms', '[]')) <> 'array' OR jsonb_array_length(coalesce(r -> 'delays_ms', '[]')) > 1000 THEN
        RAISE EXCEPTION 'retry.delays_ms is %; give an array of at most 1000 milliseconds', left((r -> 'delays_ms')::text, 64) USING ERRCODE = '22023';
    END IF;
    SELECT string_agg($schema$.check_number_('retry.delays_ms', e.value, 0, 316224000000, true), ',' ORDER BY e.n) INTO delays
    FROM jsonb_array_elements(coalesce(r -> 'delays_ms', '[]')) WITH ORDINALITY e(value, n);
    IF r ->> 'kind' = 'list' AND delays IS NULL THEN
        RAISE EXCEPTION 'retry.delays_ms is empty; a list policy needs at least one delay' USING ERRCODE = '22023';
    END IF;
    field := '{"kind":"' || (r ->> 'kind') || '","on":"' || (r ->> 'on')
        || '","max_attempts":' || $schema$.check_number_('retry.max_attempts', r -> 'max_attempts', 0, 1000000, true)
        || ',"first_delay_ms":' || $schema$.check_number_('retry.first_delay_ms', r -> 'first_delay_ms', 0, 316224000000, true)
        || ',"max_delay_ms":' || $schema$.check_number_('retry.max_delay_ms', r -> 'max_delay_ms', 0, 316224000000, true)
        || ',"factor":' || $schema$.check_number_('retry.factor', r -> 'factor', 1, 1000, false)
        || ',"jitter":' || $schema$.check_number_('retry.jitter', r -> 'jitter', 0, 1, false)
        || coalesce(',"delays_ms":[' || delays || ']', '') || '}';
    IF r ->> 'kind' = 'exponential' AND (r ->> 'max_delay_ms')::bigint < (r ->> 'first_delay_ms')::bigint THEN
        RAISE EXCEPTION 'retry.max_delay_ms is %; it must not be below first_delay_ms (%)', r ->> 'max_delay_ms', r ->> 'first_delay_ms' USING ERRCODE = '22023';
    END IF;
    RETURN field;
END $$;

-- A waiting task takes over a new request: everything but its identity, its place and its history, to which the suspicion
-- belongs. False when it does not wait any more. `longest` bounds a debounce: so long after it was first asked for it is due.
CREATE FUNCTION $schema$.replace_waiting_(wanted $schema$.live, at timestamptz, longest interval, tenant_id bigint, who text) RETURNS boolean LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    old $schema$.live%ROWTYPE; was $schema$.past%ROWTYPE; due timestamptz; flag int := wanted.flags | 2; taken boolean := false;
BEGIN
    FOR look IN 1 .. 20 LOOP
        SELECT * INTO old FROM $schema$.live v WHERE v.id = wanted.id;
        DELETE FROM $schema$.ready r WHERE r.lane = old.lane AND r.pos = old.pos AND r.task = wanted.id;
        taken := FOUND;
        EXIT WHEN taken;
        DELETE FROM $schema$.later w WHERE w.task = wanted.id;
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
        wanted.lane := (SELECT $schema$.lane_of_(q.name, l.type, l.tenant, l.priority, true)
                        FROM $schema$.lane l JOIN $schema$.queue q ON q.id = l.queue WHERE l.id = wanted.lane);
    END IF;
    due := least(wanted.due_at, old.created_at + longest);
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
    RETURN true;
END $$;

CREATE FUNCTION $schema$.submit(request jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    r jsonb := request;
    field text;
    known $schema$.task_type%ROWTYPE;
    tenant_id bigint; type_name text; queue_name text; prio int; timeout_ms bigint; delay_ms bigint; run_at timestamptz; start_by timestamptz;
    tag_list text[]; idem text; uniq text; who text; body text; parent_id bigint; hash text; task bigint; lane_id int; policy_id int; flag int; due timestamptz;
    place bigint; at timestamptz; idem_row $schema$.idem_key%ROWTYPE; existing bigint; queue_id int; most bigint; mask int;
    policy text; throttle_name text; throttle_ms bigint; throttled bigint;
    debounce_name text; wait_ms bigint; longest_ms bigint; waiting bigint; replaced boolean := false; wanted $schema$.live%ROWTYPE;
BEGIN
    -- In an older snapshot a key that somebody else has just used would be overlooked.
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION 'the transaction is %: BEGIN it with ISOLATION LEVEL READ COMMITTED', current_setting('transaction_isolation')
            USING ERRCODE = '25000';
    END IF;
    IF jsonb_typeof(r) IS DISTINCT FROM 'object' THEN RAISE EXCEPTION 'the request is not an object' USING ERRCODE = '22023'; END IF;
    SELECT k INTO field FROM jsonb_object_keys(r) k WHERE k NOT IN ('type', 'input', 'tenant', 'queue', 'priority', 'retry', 'timeout', 'delay', 'run_at',
        'start_by', 'tags', 'idempotency_key', 'unique_key', 'unique_policy', 'debounce', 'throttle', 'actor', 'parent', 'notify') LIMIT 1;
    IF field IS NOT NULL THEN RAISE EXCEPTION 'unknown field "%"', left(field, 64) USING ERRCODE = '22023'; END IF;
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
            || $schema$.digest_line_('throttle.period', throttle_ms::text) || $schema$.digest_line_('parent', parent_id::text), 'UTF8')), 'hex');
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
        lane_id := $schema$.lane_of_(queue_name, type_name, tenant_id, prio, false);
        policy_id := $schema$.policy_of_(coalesce(policy, known.retry, '{}'));
        flag := (uniq IS NOT NULL OR debounce_name IS NOT NULL)::int * 2 + (timeout_ms IS NOT NULL)::int * 8 + (start_by IS NOT NULL)::int * 16 + (known.name IS NULL)::int * 32;
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
        INSERT INTO $schema$.live(id, pos, created_at, due_at, lane, policy, flags, explicit, timeout_ms, parent, start_by, tags, unique_key, idem_key,
            debounce_key, input)
        VALUES (task, place, at, due, lane_id, policy_id, flag, mask, timeout_ms, parent_id, start_by, tag_list, uniq, idem, debounce_name, body);
        IF due <= at THEN
            INSERT INTO $schema$.ready(lane, pos, task, flags) VALUES (lane_id, place, task, flag);
        ELSE
            INSERT INTO $schema$.later(due, task, lane, flags) VALUES (due, task, lane_id, flag);
        END IF;
        -- Housekeeping makes them a week ahead.
        PERFORM $schema$.make_leaf_('audit', $schema$.day_(at));
        INSERT INTO $schema$.audit(part, seq, at, tenant, event, from_state, to_state, attempt, generation, actor, span, ids)
        VALUES ($schema$.day_(at), nextval('$schema$.audit_seq'), at, tenant_id, 0, NULL, 0, 0, 1, who, int8range(task, task, '[]'), ARRAY[task]);
        IF uniq IS NOT NULL THEN
            INSERT INTO $schema$.live_key(tenant, kind, type, key, task) VALUES (tenant_id, 0, type_name, uniq, task);
        END IF;
        IF debounce_name IS NOT NULL THEN
            INSERT INTO $schema$.live_key(tenant, kind, type, key, task) VALUES (tenant_id, 1, type_name, debounce_name, task)
            ON CONFLICT ON CONSTRAINT live_key_pkey DO UPDATE SET task = excluded.task;
        END IF;
    END IF;
    -- Something was created or changed.
    IF existing IS NULL OR replaced THEN
        IF throttle_name IS NOT NULL THEN
            INSERT INTO $schema$.throttle_key(tenant, type, key, task, until)
            VALUES (tenant_id, type_name, throttle_name, coalesce(existing, task), at + throttle_ms * interval '1 millisecond')
            ON CONFLICT ON CONSTRAINT throttle_key_pkey DO UPDATE SET task = excluded.task, until = excluded.until;
        END IF;
        IF (r -> 'notify') = 'true' THEN PERFORM pg_notify('$schema_name$_task_available', queue_name); END IF;
    END IF;
    IF idem IS NOT NULL THEN
        INSERT INTO $schema$.idem_key(tenant, key, task, hash, expires_at) VALUES (tenant_id, idem, coalesce(existing, task), hash, at + interval '7 days')
        ON CONFLICT ON CONSTRAINT idem_key_pkey DO UPDATE SET task = excluded.task, hash = excluded.hash, expires_at = excluded.expires_at;
    END IF;
    RETURN jsonb_build_object('id', coalesce(existing, task)::text, 'kind', CASE WHEN throttled IS NOT NULL THEN 'throttled' WHEN replaced THEN 'replaced' WHEN existing IS NULL THEN 'created' ELSE 'existing' END);
END $$;
REVOKE ALL ON FUNCTION $schema$.submit(jsonb) FROM PUBLIC;
