-- A with the complete claim. A task that is not ready yet has state 9.
ALTER TABLE task ALTER pos DROP NOT NULL;
CREATE FUNCTION fill(p_base bigint, p_n bigint, p_lane int, p_spread int) RETURNS void LANGUAGE sql AS $f$
  INSERT INTO task(id, pos, lane, input) SELECT p_base + g, nextval('pos_seq'), p_lane + g % p_spread, '{}' FROM generate_series(1, p_n) g $f$;
CREATE FUNCTION put_task(p_id bigint, p_lane int, p_input text) RETURNS void LANGUAGE sql AS $f$
  INSERT INTO task(id, lane, state, input) VALUES (p_id, p_lane, 9, p_input) $f$;
CREATE FUNCTION put_ready(p_ids bigint[]) RETURNS void LANGUAGE sql AS $f$
  UPDATE task t SET state = 0, pos = n.pos FROM (SELECT i, nextval('pos_seq') AS pos FROM unnest(p_ids) i) n WHERE t.id = n.i AND t.id = ANY (p_ids) $f$;
CREATE FUNCTION waiting(p_from bigint, p_to bigint, p_lane int) RETURNS bigint LANGUAGE sql AS $f$
  SELECT count(*) FROM task WHERE id BETWEEN p_from AND p_to AND state = 0 AND (p_lane IS NULL OR lane = p_lane) $f$;
CREATE FUNCTION held() RETURNS bigint LANGUAGE sql AS $f$ SELECT count(*) FROM task WHERE state = 1 $f$;
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
      SELECT t.ctid AS c, t.pos FROM task t WHERE t.lane = l.lane AND t.pos > l.mark  AND t.state = 0 ORDER BY t.pos LIMIT $8 FOR UPDATE SKIP LOCKED) q
    ORDER BY q.pos LIMIT $8) r
  LIMIT $2),
u AS (UPDATE task SET state = 1, attempt = attempt + 1, session = $1, token = $3, started = clock_timestamp()
      WHERE ctid = ANY (ARRAY(SELECT c FROM p)) RETURNING id, lane, pos, input),
a AS (INSERT INTO audit(kind, session, token, span, ids) SELECT 2, $1, $3, int8range(min(id), max(id), '[]'), array_agg(id) FROM u HAVING count(*) > 0)
SELECT id, 0 AS lease, lane, pos, input FROM u
-- name: cancel
WITH u AS (UPDATE task SET state = 3, finished = clock_timestamp() WHERE id = $1 AND state = 0 RETURNING id),
a AS (INSERT INTO audit(kind, span, ids) SELECT 4, int8range(id, id, '[]'), ARRAY[id] FROM u)
SELECT count(*) FROM u
-- name: edit
WITH u AS (UPDATE task SET lane = $2, pos = nextval('pos_seq'), input = $3 WHERE id = $1 AND state = 0 RETURNING id),
a AS (INSERT INTO audit(kind, span, ids) SELECT 5, int8range(id, id, '[]'), ARRAY[id] FROM u)
SELECT count(*) FROM u
