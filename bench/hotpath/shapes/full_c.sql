-- C with the complete claim. A ready row that must not be taken any more has a tombstone at its position.
ALTER TABLE task ADD pos bigint;
DROP TABLE dropped;
CREATE TABLE dropped(pos bigint PRIMARY KEY);
CREATE FUNCTION append_(p_ids bigint[]) RETURNS void LANGUAGE sql AS $f$
  WITH u AS (UPDATE task t SET pos = n.pos FROM (SELECT i, nextval('pos_seq') AS pos FROM unnest(p_ids) i) n WHERE t.id = n.i AND t.id = ANY (p_ids) RETURNING t.id, t.lane, t.pos)
  INSERT INTO ready(lane, pos, task, seg) SELECT lane, pos, id, (pos >> 18) & 3 FROM u $f$;
CREATE FUNCTION fill(p_base bigint, p_n bigint, p_lane int, p_spread int) RETURNS void LANGUAGE sql AS $f$
  WITH t AS (INSERT INTO task(id, lane, pos, input) SELECT p_base + g, p_lane + g % p_spread, nextval('pos_seq'), '{}' FROM generate_series(1, p_n) g RETURNING id, lane, pos)
  INSERT INTO ready(lane, pos, task, seg) SELECT lane, pos, id, (pos >> 18) & 3 FROM t $f$;
CREATE FUNCTION put_task(p_id bigint, p_lane int, p_input text) RETURNS void LANGUAGE sql AS $f$
  INSERT INTO task(id, lane, input) VALUES (p_id, p_lane, p_input) $f$;
CREATE FUNCTION put_ready(p_ids bigint[]) RETURNS void LANGUAGE sql AS $f$ SELECT append_(p_ids) $f$;
CREATE FUNCTION waiting(p_from bigint, p_to bigint, p_lane int) RETURNS bigint LANGUAGE sql AS $f$
  SELECT count(*) FROM ready r WHERE task BETWEEN p_from AND p_to AND (p_lane IS NULL OR lane = p_lane)
    AND NOT EXISTS (SELECT FROM dropped d WHERE d.pos = r.pos)
    AND r.pos > coalesce((SELECT max(upto) FROM claim_mark m WHERE m.lane = r.lane), 0) $f$;
-- What was committed below the marks: no lease, no result, no tombstone. Reads every row of the segments.
CREATE FUNCTION left_behind() RETURNS bigint LANGUAGE sql AS $f$
  SELECT count(*) FROM ready r
  WHERE r.pos <= coalesce((SELECT max(upto) FROM claim_mark m WHERE m.lane = r.lane), 0)
    AND NOT EXISTS (SELECT FROM dropped d WHERE d.pos = r.pos) AND NOT EXISTS (SELECT FROM result x WHERE x.id = r.task)
    AND NOT EXISTS (SELECT FROM lease l WHERE r.task = ANY (l.ids)) $f$;
CREATE FUNCTION full_claim(p_session bigint, p_n int, p_token uuid, p_types int[], p_labels text[], p_quota int, p_first int)
RETURNS TABLE(task bigint, lease bigint, lane int, pos bigint, input text) LANGUAGE plpgsql AS $f$
DECLARE v record; v_mark bigint; v_left int := p_n; v_ids bigint[]; v_att smallint[]; v_top bigint;
  v_all bigint[] := '{}'; v_attempts smallint[] := '{}'; v_lease bigint := nextval('lease_seq');
BEGIN
  PERFORM 1 FROM session s WHERE s.id = p_session AND s.live AND s.lease_until > clock_timestamp() FOR KEY SHARE;
  IF NOT FOUND THEN RETURN; END IF;
  FOR v IN SELECT l.id FROM lane l WHERE l.type = ANY (p_types) AND l.labels <@ p_labels
      AND (l.resource IS NULL OR EXISTS (SELECT FROM slot f WHERE f.resource = l.resource AND f.lease IS NULL))
      ORDER BY l.priority DESC, l.tenant < p_first, l.tenant LOOP
    PERFORM pg_advisory_xact_lock(7, v.id);
    SELECT m.upto INTO v_mark FROM claim_mark m WHERE m.lane = v.id ORDER BY m.upto DESC LIMIT 1;
    SELECT array_agg(q.task), array_agg((q.attempt + 1)::smallint), max(q.pos) INTO v_ids, v_att, v_top
      FROM (SELECT r.task, r.attempt, r.pos FROM ready r WHERE r.lane = v.id AND r.pos > coalesce(v_mark, 0)
              AND NOT EXISTS (SELECT FROM dropped d WHERE d.pos = r.pos) ORDER BY r.pos LIMIT least(v_left, p_quota)) q;
    CONTINUE WHEN v_ids IS NULL;
    v_left := v_left - cardinality(v_ids);
    INSERT INTO claim_mark VALUES (v.id, v_top);
    v_all := v_all || v_ids; v_attempts := v_attempts || v_att;
    EXIT WHEN v_left <= 0;
  END LOOP;
  IF v_all = '{}' THEN RETURN; END IF;
  INSERT INTO lease(id, token, session, ids, attempts) VALUES (v_lease, p_token, p_session, v_all, v_attempts);
  INSERT INTO audit(kind, session, token, span, ids) VALUES (2, p_session, p_token, int8range((SELECT min(i) FROM unnest(v_all) i), (SELECT max(i) FROM unnest(v_all) i), '[]'), v_all);
  RETURN QUERY SELECT t.id, v_lease, t.lane, t.pos, t.input FROM task t WHERE t.id = ANY (v_all);
END $f$;
CREATE FUNCTION held() RETURNS bigint LANGUAGE sql AS $f$ SELECT count(*) FROM lease $f$;
-- name: submit
WITH t AS (INSERT INTO task(id, lane, pos, input) SELECT i, l, nextval('pos_seq'), p FROM unnest($1, $2, $3) u(i, l, p) RETURNING id, lane, pos),
r AS (INSERT INTO ready(lane, pos, task, seg) SELECT lane, pos, id, (pos >> 18) & 3 FROM t)
INSERT INTO audit(kind, span, ids) SELECT 1, int8range(min(id), max(id), '[]'), array_agg(id) FROM t
-- name: claim
SELECT task, lease, lane, pos, input FROM full_claim($1, $2, $3, $6, $7, $8, $9) WHERE $4 IS NOT NULL AND $5 IS NOT NULL
-- name: cancel
WITH l AS MATERIALIZED (SELECT pg_advisory_xact_lock(7, lane) FROM task WHERE id = $1),
t AS MATERIALIZED (SELECT t.id, t.pos FROM l, task t WHERE t.id = $1
  AND t.pos > coalesce((SELECT max(upto) FROM claim_mark m WHERE m.lane = t.lane), 0)),
d AS (INSERT INTO dropped SELECT pos FROM t),
r AS (INSERT INTO result(id, session, started, token, attempt, state) SELECT id, 0, clock_timestamp(), '00000000-0000-0000-0000-000000000000', 0, 2 FROM t),
a AS (INSERT INTO audit(kind, span, ids) SELECT 4, int8range(id, id, '[]'), ARRAY[id] FROM t)
SELECT count(*) FROM t
-- name: edit
WITH l AS MATERIALIZED (SELECT pg_advisory_xact_lock(7, lane) FROM task WHERE id = $1),
t AS MATERIALIZED (SELECT t.id, t.pos, nextval('pos_seq') AS now_pos FROM l, task t WHERE t.id = $1
  AND t.pos > coalesce((SELECT max(upto) FROM claim_mark m WHERE m.lane = t.lane), 0)),
d AS (INSERT INTO dropped SELECT pos FROM t),
u AS (UPDATE task SET lane = $2, pos = t.now_pos, input = $3 FROM t WHERE task.id = t.id),
i AS (INSERT INTO ready(lane, pos, task, seg) SELECT $2, now_pos, id, (now_pos >> 18) & 3 FROM t),
a AS (INSERT INTO audit(kind, span, ids) SELECT 5, int8range(id, id, '[]'), ARRAY[id] FROM t)
SELECT count(*) FROM t
