-- E with the complete claim: shape F.
ALTER TABLE task ADD pos bigint;
CREATE FUNCTION fill(p_base bigint, p_n bigint, p_lane int, p_spread int) RETURNS void LANGUAGE sql AS $f$
  WITH t AS (INSERT INTO task(id, lane, pos, input) SELECT p_base + g, p_lane + g % p_spread, nextval('pos_seq'), '{}' FROM generate_series(1, p_n) g RETURNING id, lane, pos)
  INSERT INTO ready(lane, pos, task) SELECT lane, pos, id FROM t $f$;
CREATE FUNCTION put_task(p_id bigint, p_lane int, p_input text) RETURNS void LANGUAGE sql AS $f$
  INSERT INTO task(id, lane, pos, input) VALUES (p_id, p_lane, nextval('pos_seq'), p_input) $f$;
CREATE FUNCTION put_ready(p_ids bigint[]) RETURNS void LANGUAGE sql AS $f$
  WITH u AS (UPDATE task t SET pos = n.pos FROM (SELECT i, nextval('pos_seq') AS pos FROM unnest(p_ids) i) n WHERE t.id = n.i AND t.id = ANY (p_ids) RETURNING t.id, t.lane, t.pos)
  INSERT INTO ready(lane, pos, task) SELECT lane, pos, id FROM u $f$;
CREATE FUNCTION waiting(p_from bigint, p_to bigint, p_lane int) RETURNS bigint LANGUAGE sql AS $f$
  SELECT count(*) FROM ready WHERE task BETWEEN p_from AND p_to AND (p_lane IS NULL OR lane = p_lane) $f$;
CREATE FUNCTION held() RETURNS bigint LANGUAGE sql AS $f$ SELECT count(*) FROM lease $f$;
-- name: submit
WITH t AS (INSERT INTO task(id, lane, pos, input) SELECT i, l, nextval('pos_seq'), p FROM unnest($1, $2, $3) u(i, l, p) RETURNING id, lane, pos),
r AS (INSERT INTO ready(lane, pos, task) SELECT lane, pos, id FROM t)
INSERT INTO audit(kind, span, ids) SELECT 1, int8range(min(id), max(id), '[]'), array_agg(id) FROM t
-- name: claim
WITH s AS MATERIALIZED (SELECT id FROM session WHERE id = $1 AND live AND lease_until > clock_timestamp() FOR KEY SHARE),
m AS MATERIALIZED (   -- union and group, not a join: a generic plan expects ten marks and would compare every lane with every mark
  SELECT id, max(priority) AS priority, max(tenant) AS tenant, max(mark) AS mark FROM (
    SELECT l.id, l.priority, l.tenant, 0::bigint AS mark FROM s, lane l
    WHERE l.type = ANY ($6) AND l.labels <@ $7
      AND (l.resource IS NULL OR EXISTS (SELECT FROM slot f WHERE f.resource = l.resource AND f.lease IS NULL))
    UNION ALL SELECT lane, NULL, NULL, mark FROM unnest($4, $5) k(lane, mark)) x
  GROUP BY id HAVING max(priority) IS NOT NULL),
h AS MATERIALIZED (
  SELECT priority, tenant, array_agg(id) AS lanes, array_agg(mark) AS marks FROM m
  GROUP BY priority, tenant ORDER BY priority DESC, tenant < $9, tenant),
p AS MATERIALIZED (
  SELECT r.c FROM h CROSS JOIN LATERAL (
    SELECT q.c FROM unnest(h.lanes, h.marks) l(lane, mark) CROSS JOIN LATERAL (
      SELECT t.ctid AS c, t.pos FROM ready t WHERE t.lane = l.lane AND t.pos > l.mark ORDER BY t.pos LIMIT $8 FOR UPDATE SKIP LOCKED) q
    ORDER BY q.pos LIMIT $8) r
  LIMIT $2),
g AS (DELETE FROM ready WHERE ctid = ANY (ARRAY(SELECT c FROM p)) RETURNING task, lane, pos, attempt),
b AS (INSERT INTO lease(id, token, session, ids, attempts)
      SELECT nextval('lease_seq'), $3, $1, array_agg(task), array_agg((attempt + 1)::smallint) FROM g HAVING count(*) > 0 RETURNING id, ids),
a AS (INSERT INTO audit(kind, session, token, span, ids) SELECT 2, $1, $3, int8range((SELECT min(i) FROM unnest(ids) i), (SELECT max(i) FROM unnest(ids) i), '[]'), ids FROM b)
SELECT g.task, b.id AS lease, g.lane, g.pos, t.input FROM b, g JOIN task t ON t.id = g.task
-- name: cancel
WITH t AS (SELECT id, lane, pos FROM task WHERE id = $1),
g AS (DELETE FROM ready r USING t WHERE r.lane = t.lane AND r.pos = t.pos AND r.task = t.id RETURNING r.task, r.attempt),
r AS (INSERT INTO result(id, session, started, token, attempt, state) SELECT task, 0, clock_timestamp(), '00000000-0000-0000-0000-000000000000', attempt, 2 FROM g),
a AS (INSERT INTO audit(kind, span, ids) SELECT 4, int8range(task, task, '[]'), ARRAY[task] FROM g)
SELECT count(*) FROM g
-- name: edit
WITH n AS (SELECT nextval('pos_seq') AS pos),
t AS MATERIALIZED (SELECT id, lane, pos FROM task WHERE id = $1),
g AS (DELETE FROM ready r USING t WHERE r.lane = t.lane AND r.pos = t.pos AND r.task = t.id RETURNING r.task, r.attempt),
i AS (INSERT INTO ready(lane, pos, task, attempt) SELECT $2, n.pos, g.task, g.attempt FROM g, n),
u AS (UPDATE task SET lane = $2, pos = n.pos, input = $3 FROM g, n WHERE id = g.task),
a AS (INSERT INTO audit(kind, span, ids) SELECT 5, int8range(task, task, '[]'), ARRAY[task] FROM g)
SELECT count(*) FROM g
