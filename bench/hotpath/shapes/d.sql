-- D: as B, but one lease row per claimed batch instead of one run row per task.
CREATE TABLE task(id bigint PRIMARY KEY, pos bigint NOT NULL, lane int NOT NULL, input text, created timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE ready(pos bigint NOT NULL, task bigint NOT NULL, lane int NOT NULL, attempt smallint NOT NULL DEFAULT 0, PRIMARY KEY (lane, pos));
CREATE TABLE lease(
  id bigint PRIMARY KEY, token uuid NOT NULL, session bigint NOT NULL, started timestamptz NOT NULL DEFAULT clock_timestamp(),
  ids bigint[] NOT NULL, attempts smallint[] NOT NULL
) WITH (toast_tuple_target = 8160, fillfactor = 50);
ALTER TABLE lease ALTER ids SET STORAGE MAIN, ALTER attempts SET STORAGE MAIN;
CREATE INDEX lease_session ON lease(session);
CREATE TABLE history(
  id bigint PRIMARY KEY, lane int NOT NULL, attempt smallint NOT NULL, session bigint NOT NULL, token uuid NOT NULL, input text, output text,
  created timestamptz NOT NULL, started timestamptz NOT NULL, finished timestamptz NOT NULL DEFAULT clock_timestamp());
-- name: submit
WITH t AS (INSERT INTO task(id, pos, lane, input) SELECT i, nextval('pos_seq'), l, p FROM unnest($1, $2, $3) u(i, l, p) RETURNING id, lane, pos),
r AS (INSERT INTO ready(lane, pos, task) SELECT lane, pos, id FROM t)
INSERT INTO audit(kind, span, ids) SELECT 1, int8range(min(id), max(id), '[]'), array_agg(id) FROM t
-- name: claim
WITH s AS MATERIALIZED (SELECT id FROM session WHERE id = $1 AND live AND lease_until > clock_timestamp() FOR KEY SHARE),
p AS MATERIALIZED (
  SELECT r.c FROM s, unnest($4, $5) WITH ORDINALITY AS l(lane, mark, k)
  CROSS JOIN LATERAL (SELECT t.ctid AS c FROM ready t WHERE t.lane = l.lane AND t.pos > l.mark ORDER BY t.pos LIMIT $2 FOR UPDATE SKIP LOCKED) r
  LIMIT $2),
g AS (DELETE FROM ready WHERE ctid = ANY (ARRAY(SELECT c FROM p)) RETURNING task, lane, pos, attempt),
b AS (INSERT INTO lease(id, token, session, ids, attempts)
      SELECT nextval('lease_seq'), $3, $1, array_agg(task), array_agg((attempt + 1)::smallint) FROM g HAVING count(*) > 0 RETURNING id, ids),
a AS (INSERT INTO audit(kind, session, token, span, ids) SELECT 2, $1, $3, int8range((SELECT min(i) FROM unnest(ids) i), (SELECT max(i) FROM unnest(ids) i), '[]'), ids FROM b)
SELECT g.task, b.id AS lease, g.lane, g.pos, t.input FROM b, g JOIN task t ON t.id = g.task
-- name: settle
WITH l AS MATERIALIZED (SELECT * FROM lease WHERE id = $1 AND token = $2 FOR UPDATE),
h AS MATERIALIZED (SELECT u.i, u.n, x.o, x.i IS NOT NULL AS mine, l.session, l.started FROM l CROSS JOIN LATERAL unnest(l.ids, l.attempts) u(i, n) LEFT JOIN unnest($3, $4) x(i, o) ON x.i = u.i),
k AS (SELECT array_agg(i) AS ids, array_agg(n) AS attempts FROM h WHERE NOT mine),
lu AS (UPDATE lease SET ids = k.ids, attempts = k.attempts FROM k WHERE id = $1 AND k.ids IS NOT NULL),
ld AS (DELETE FROM lease USING k WHERE id = $1 AND k.ids IS NULL AND EXISTS (SELECT FROM l)),
t AS (DELETE FROM task t USING h WHERE h.mine AND t.id = h.i AND t.id = ANY ($3) RETURNING t.id, t.lane, h.n, h.session, $2, t.input, h.o, t.created, h.started),
hi AS (INSERT INTO history SELECT * FROM t),
a AS (INSERT INTO audit(kind, token, span, ids) SELECT 3, $2, int8range(min(id), max(id), '[]'), array_agg(id) FROM t HAVING count(*) > 0)
SELECT count(*) FROM h WHERE mine
