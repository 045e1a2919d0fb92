-- A: one task table, state changed by UPDATE, one partial index over the waiting rows.
CREATE TABLE task(
  id bigint PRIMARY KEY, pos bigint NOT NULL, lane int NOT NULL, state smallint NOT NULL DEFAULT 0, attempt smallint NOT NULL DEFAULT 0,
  session bigint, token uuid, input text, output text,
  created timestamptz NOT NULL DEFAULT clock_timestamp(), started timestamptz, finished timestamptz
) WITH (fillfactor = 70);
CREATE INDEX task_ready ON task(lane, pos) WHERE state = 0;
-- name: submit
WITH t AS (INSERT INTO task(id, pos, lane, input) SELECT i, nextval('pos_seq'), l, p FROM unnest($1, $2, $3) u(i, l, p) RETURNING id)
INSERT INTO audit(kind, span, ids) SELECT 1, int8range(min(id), max(id), '[]'), array_agg(id) FROM t
-- name: claim
WITH s AS MATERIALIZED (SELECT id FROM session WHERE id = $1 AND live AND lease_until > clock_timestamp() FOR KEY SHARE),
p AS MATERIALIZED (
  SELECT r.c FROM s, unnest($4, $5) WITH ORDINALITY AS l(lane, mark, k)
  CROSS JOIN LATERAL (SELECT t.ctid AS c FROM task t WHERE t.state = 0 AND t.lane = l.lane AND t.pos > l.mark ORDER BY t.pos LIMIT $2 FOR UPDATE SKIP LOCKED) r
  LIMIT $2),
u AS (UPDATE task SET state = 1, attempt = attempt + 1, session = $1, token = $3, started = clock_timestamp()
      WHERE ctid = ANY (ARRAY(SELECT c FROM p)) RETURNING id, lane, pos, input),
a AS (INSERT INTO audit(kind, session, token, span, ids) SELECT 2, $1, $3, int8range(min(id), max(id), '[]'), array_agg(id) FROM u HAVING count(*) > 0)
SELECT id, 0 AS lease, lane, pos, input FROM u
-- name: settle
WITH u AS (UPDATE task t SET state = 2, output = x.o, finished = clock_timestamp() FROM unnest($3, $4) x(i, o)
           WHERE t.id = x.i AND t.id = ANY ($3) AND t.token = $2 AND t.state = 1 RETURNING t.id),
a AS (INSERT INTO audit(kind, token, span, ids) SELECT 3, $2, int8range(min(id), max(id), '[]'), array_agg(id) FROM u HAVING count(*) > 0)
SELECT count(*) FROM u WHERE $1 IS NOT NULL
