-- B1: as B, but one physical audit row per task and transition instead of one per batch.
CREATE TABLE task(id bigint PRIMARY KEY, pos bigint NOT NULL, lane int NOT NULL, input text, created timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE ready(pos bigint NOT NULL, task bigint NOT NULL, lane int NOT NULL, attempt smallint NOT NULL DEFAULT 0, PRIMARY KEY (lane, pos));
CREATE TABLE run(task bigint PRIMARY KEY, token uuid NOT NULL, session bigint NOT NULL, attempt smallint NOT NULL, started timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE history(
  id bigint PRIMARY KEY, lane int NOT NULL, attempt smallint NOT NULL, session bigint NOT NULL, token uuid NOT NULL, input text, output text,
  created timestamptz NOT NULL, started timestamptz NOT NULL, finished timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE audit1(at timestamptz NOT NULL DEFAULT clock_timestamp(), kind smallint NOT NULL, session bigint, token uuid, task bigint NOT NULL);
CREATE INDEX audit1_task ON audit1(task);
-- name: submit
WITH t AS (INSERT INTO task(id, pos, lane, input) SELECT i, nextval('pos_seq'), l, p FROM unnest($1, $2, $3) u(i, l, p) RETURNING id, lane, pos),
r AS (INSERT INTO ready(lane, pos, task) SELECT lane, pos, id FROM t)
INSERT INTO audit1(kind, task) SELECT 1, id FROM t
-- name: claim
WITH s AS MATERIALIZED (SELECT id FROM session WHERE id = $1 AND live AND lease_until > clock_timestamp() FOR KEY SHARE),
p AS MATERIALIZED (
  SELECT r.c FROM s, unnest($4, $5) WITH ORDINALITY AS l(lane, mark, k)
  CROSS JOIN LATERAL (SELECT t.ctid AS c FROM ready t WHERE t.lane = l.lane AND t.pos > l.mark ORDER BY t.pos LIMIT $2 FOR UPDATE SKIP LOCKED) r
  LIMIT $2),
g AS (DELETE FROM ready WHERE ctid = ANY (ARRAY(SELECT c FROM p)) RETURNING task, lane, pos, attempt),
u AS (INSERT INTO run(task, token, session, attempt) SELECT task, $3, $1, attempt + 1 FROM g),
a AS (INSERT INTO audit1(kind, session, token, task) SELECT 2, $1, $3, task FROM g)
SELECT g.task, 0 AS lease, g.lane, g.pos, t.input FROM g JOIN task t ON t.id = g.task
-- name: settle
WITH d AS (DELETE FROM run r USING unnest($3, $4) x(i, o) WHERE r.task = x.i AND r.task = ANY ($3) AND r.token = $2 RETURNING r.*, x.o),
t AS (DELETE FROM task t USING d WHERE t.id = d.task AND t.id = ANY ($3) RETURNING t.id, t.lane, d.attempt, d.session, d.token, t.input, d.o, t.created, d.started),
h AS (INSERT INTO history SELECT * FROM t RETURNING id),
a AS (INSERT INTO audit1(kind, token, task) SELECT 3, $2, id FROM t)
SELECT count(*) FROM t WHERE $1 IS NOT NULL
