-- What the checks need beside a shape: resource slots, future tasks, ordered keys. A shape brings four functions of its own:
--   put_task(id, lane, input)   stores a task that is not ready yet
--   put_ready(ids)              makes stored tasks ready, at new positions, in this order
--   waiting(from, to, lane)     how many tasks with these ids wait, in the lane or (NULL) in any
--   held()                      how many leases there are
-- and fill(base, n, lane, spread): n ready tasks in lanes lane … lane + spread - 1 in turn, as submit does, without the audit.
CREATE TABLE slot(resource int NOT NULL, no int NOT NULL, lease bigint, task bigint, PRIMARY KEY (resource, no)) WITH (fillfactor = 50);
CREATE TABLE later(due timestamptz NOT NULL, task bigint NOT NULL, PRIMARY KEY (due, task));
CREATE TABLE fifo(key bigint PRIMARY KEY, task bigint);                             -- the task that holds the key's turn, NULL: nobody
CREATE TABLE fifo_wait(key bigint NOT NULL, no bigint NOT NULL, task bigint NOT NULL, PRIMARY KEY (key, no));
CREATE FUNCTION promote(p_n int) RETURNS bigint LANGUAGE plpgsql AS $f$
DECLARE v_ids bigint[];
BEGIN
  WITH d AS MATERIALIZED (SELECT ctid AS c FROM later WHERE due <= (SELECT clock_timestamp()) ORDER BY due LIMIT p_n FOR UPDATE SKIP LOCKED),
  g AS (DELETE FROM later WHERE ctid = ANY (ARRAY(SELECT c FROM d)) RETURNING task, due)
  SELECT array_agg(task ORDER BY due, task) INTO v_ids FROM g;
  IF v_ids IS NOT NULL THEN PERFORM put_ready(v_ids); END IF;
  RETURN coalesce(cardinality(v_ids), 0);
END $f$;
CREATE FUNCTION fifo_submit(p_key bigint, p_task bigint, p_lane int) RETURNS void LANGUAGE plpgsql AS $f$
DECLARE v_head bigint;
BEGIN
  INSERT INTO fifo(key) VALUES (p_key) ON CONFLICT DO NOTHING;
  SELECT task INTO v_head FROM fifo WHERE key = p_key FOR UPDATE;
  PERFORM put_task(p_task, p_lane, p_key::text);
  IF v_head IS NULL THEN
    UPDATE fifo SET task = p_task WHERE key = p_key;
    PERFORM put_ready(ARRAY[p_task]);
  ELSE INSERT INTO fifo_wait(key, no, task) VALUES (p_key, p_task, p_task); END IF;
END $f$;
-- After the settle of these tasks, in its transaction: the next of each key.
CREATE FUNCTION fifo_next(p_tasks bigint[], p_keys bigint[]) RETURNS void LANGUAGE plpgsql AS $f$
DECLARE v_ids bigint[];
BEGIN
  WITH k AS MATERIALIZED (SELECT key FROM fifo WHERE key = ANY (p_keys) AND task = ANY (p_tasks) ORDER BY key FOR UPDATE),
  n AS MATERIALIZED (
    SELECT k.key, w.no, w.task FROM k CROSS JOIN LATERAL (SELECT * FROM fifo_wait w WHERE w.key = k.key ORDER BY w.no LIMIT 1) w),
  d AS (DELETE FROM fifo_wait w USING n WHERE w.key = n.key AND w.no = n.no),
  u AS (UPDATE fifo SET task = n.task FROM k LEFT JOIN n USING (key) WHERE fifo.key = k.key)
  SELECT array_agg(task ORDER BY no) INTO v_ids FROM n;
  IF v_ids IS NOT NULL THEN PERFORM put_ready(v_ids); END IF;
END $f$;
