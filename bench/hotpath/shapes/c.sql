-- C: as E, but ready rows are never deleted: they are appended to one of four rotating segments (by position) and an append-only
-- claim mark per lane says how far claims have come. A segment is truncated when all of it lies below the marks.
CREATE TABLE task(id bigint NOT NULL, lane int NOT NULL, input text, created timestamptz NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE task_1 PARTITION OF task FOR VALUES FROM (0) TO (3000000);
CREATE TABLE task_2 PARTITION OF task FOR VALUES FROM (3000000) TO (6000000);
CREATE TABLE task_x PARTITION OF task DEFAULT;
CREATE TABLE result(
  id bigint NOT NULL, session bigint NOT NULL, started timestamptz NOT NULL, finished timestamptz NOT NULL DEFAULT clock_timestamp(), token uuid NOT NULL,
  attempt smallint NOT NULL, state smallint NOT NULL, output text, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE result_1 PARTITION OF result FOR VALUES FROM (0) TO (3000000);
CREATE TABLE result_2 PARTITION OF result FOR VALUES FROM (3000000) TO (6000000);
CREATE TABLE result_x PARTITION OF result DEFAULT;
CREATE VIEW history AS SELECT t.id, t.lane, r.attempt, r.session, r.token, t.input, r.output, t.created, r.started, r.finished, r.state FROM task t JOIN result r USING (id);
CREATE TABLE ready(pos bigint NOT NULL, task bigint NOT NULL, lane int NOT NULL, attempt smallint NOT NULL DEFAULT 0, seg int NOT NULL, PRIMARY KEY (lane, pos, seg)) PARTITION BY LIST (seg);
CREATE TABLE ready_0 PARTITION OF ready FOR VALUES IN (0);
CREATE TABLE ready_1 PARTITION OF ready FOR VALUES IN (1);
CREATE TABLE ready_2 PARTITION OF ready FOR VALUES IN (2);
CREATE TABLE ready_3 PARTITION OF ready FOR VALUES IN (3);
CREATE TABLE claim_mark(lane int NOT NULL, upto bigint NOT NULL, PRIMARY KEY (lane, upto));
CREATE TABLE dropped(task bigint PRIMARY KEY);   -- cancelled or edited while waiting: the old ready row is void
-- The lock is taken in an earlier statement than the read (a plpgsql function takes a new snapshot per statement).
CREATE FUNCTION claim(p_session bigint, p_n int, p_token uuid, p_lanes int[]) RETURNS TABLE(task bigint, lease bigint, lane int, pos bigint, input text) LANGUAGE plpgsql AS $f$
DECLARE v_lane int; v_mark bigint; v_left int := p_n; v_ids bigint[]; v_att smallint[]; v_top bigint; v_lease bigint;
BEGIN
  PERFORM 1 FROM session s WHERE s.id = p_session AND s.live AND s.lease_until > clock_timestamp() FOR KEY SHARE;
  IF NOT FOUND THEN RETURN; END IF;
  FOREACH v_lane IN ARRAY p_lanes LOOP
    PERFORM pg_advisory_xact_lock(7, v_lane);
    SELECT m.upto INTO v_mark FROM claim_mark m WHERE m.lane = v_lane ORDER BY m.upto DESC LIMIT 1;
    SELECT array_agg(q.task), array_agg((q.attempt + 1)::smallint), max(q.pos) INTO v_ids, v_att, v_top
      FROM (SELECT r.task, r.attempt, r.pos FROM ready r WHERE r.lane = v_lane AND r.pos > coalesce(v_mark, 0)
              AND NOT EXISTS (SELECT FROM dropped d WHERE d.task = r.task) ORDER BY r.pos LIMIT v_left) q;
    CONTINUE WHEN v_ids IS NULL;
    v_left := v_left - cardinality(v_ids);
    INSERT INTO claim_mark VALUES (v_lane, v_top);
    INSERT INTO lease(id, token, session, ids, attempts) VALUES (nextval('lease_seq'), p_token, p_session, v_ids, v_att) RETURNING id INTO v_lease;
    INSERT INTO audit(kind, session, token, span, ids) VALUES (2, p_session, p_token, int8range((SELECT min(i) FROM unnest(v_ids) i), (SELECT max(i) FROM unnest(v_ids) i), '[]'), v_ids);
    RETURN QUERY SELECT t.id, v_lease, v_lane, v_top, t.input FROM task t WHERE t.id = ANY (v_ids);
    EXIT WHEN v_left <= 0;
  END LOOP;
END $f$;
-- Housekeeping, every second: truncate full, fully claimed segments; never wait for a lock.
CREATE FUNCTION janitor() RETURNS int LANGUAGE plpgsql AS $f$
DECLARE k int; top bigint; low bigint; done int := 0;
BEGIN
  SELECT min(u) INTO low FROM (SELECT max(upto) AS u FROM claim_mark GROUP BY lane) x;
  FOR k IN 0..3 LOOP
    EXECUTE format('SELECT max(pos) FROM ready_%s', k) INTO top;
    CONTINUE WHEN top IS NULL OR top > low OR (top >> 18) = (SELECT last_value >> 18 FROM pos_seq);
    BEGIN
      EXECUTE format('LOCK TABLE ready_%s IN ACCESS EXCLUSIVE MODE NOWAIT', k);
      EXECUTE format('TRUNCATE ready_%s', k); done := done + 1;
    EXCEPTION WHEN lock_not_available THEN NULL; END;
  END LOOP;
  RETURN done;
END $f$;
CREATE TABLE lease(
  id bigint PRIMARY KEY, token uuid NOT NULL, session bigint NOT NULL, started timestamptz NOT NULL DEFAULT clock_timestamp(),
  ids bigint[] NOT NULL, attempts smallint[] NOT NULL
) WITH (toast_tuple_target = 8160, fillfactor = 50);
ALTER TABLE lease ALTER ids SET STORAGE MAIN, ALTER attempts SET STORAGE MAIN;
CREATE INDEX lease_session ON lease(session);
-- name: submit
WITH t AS (INSERT INTO task(id, lane, input) SELECT i, l, p FROM unnest($1, $2, $3) u(i, l, p) RETURNING id, lane),
r AS (INSERT INTO ready(lane, pos, task, seg) SELECT lane, p, id, (p >> 18) & 3 FROM (SELECT lane, id, nextval('pos_seq') AS p FROM t) q)
INSERT INTO audit(kind, span, ids) SELECT 1, int8range(min(id), max(id), '[]'), array_agg(id) FROM t
-- name: claim
SELECT task, lease, lane, pos, input FROM claim($1, $2, $3, $4) WHERE $5 IS NOT NULL
-- name: settle
WITH l AS MATERIALIZED (SELECT * FROM lease WHERE id = $1 AND token = $2 FOR UPDATE),
h AS MATERIALIZED (SELECT u.i, u.n, x.o, x.i IS NOT NULL AS mine, l.session, l.started FROM l CROSS JOIN LATERAL unnest(l.ids, l.attempts) u(i, n) LEFT JOIN unnest($3, $4) x(i, o) ON x.i = u.i),
k AS (SELECT array_agg(i) AS ids, array_agg(n) AS attempts FROM h WHERE NOT mine),
lu AS (UPDATE lease SET ids = k.ids, attempts = k.attempts FROM k WHERE id = $1 AND k.ids IS NOT NULL),
ld AS (DELETE FROM lease USING k WHERE id = $1 AND k.ids IS NULL AND EXISTS (SELECT FROM l)),
r AS (INSERT INTO result(id, session, started, token, attempt, state, output) SELECT i, session, started, $2, n, 1, o FROM h WHERE mine),
a AS (INSERT INTO audit(kind, token, span, ids) SELECT 3, $2, int8range(min(i), max(i), '[]'), array_agg(i) FROM h WHERE mine HAVING count(*) > 0)
SELECT count(*) FROM h WHERE mine
