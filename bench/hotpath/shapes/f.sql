-- F: shape E with the complete claim statement: lanes chosen in the database by type, labels and free resource; priority first, within it
-- tenants in turn ($8 tasks each, starting at tenant $9), within a tenant submit order over all its lanes.
-- Beside it what the checks need: future and retried tasks, ordered keys, resource slots, cancel and edit while waiting.
CREATE TABLE slot(resource int NOT NULL, no int NOT NULL, lease bigint, task bigint, PRIMARY KEY (resource, no)) WITH (fillfactor = 50);
CREATE TABLE later(due timestamptz NOT NULL, task bigint NOT NULL, lane int NOT NULL, attempt smallint NOT NULL DEFAULT 0, PRIMARY KEY (due, task));
CREATE TABLE fifo(key bigint PRIMARY KEY, task bigint);                             -- the task that holds the key's turn, NULL: nobody
CREATE TABLE fifo_wait(key bigint NOT NULL, pos bigint NOT NULL, task bigint NOT NULL, lane int NOT NULL, PRIMARY KEY (key, pos));
CREATE TABLE task(id bigint NOT NULL, lane int NOT NULL, pos bigint, input text, created timestamptz NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (id)) PARTITION BY RANGE (id);
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
CREATE TABLE ready(pos bigint NOT NULL, task bigint NOT NULL, lane int NOT NULL, attempt smallint NOT NULL DEFAULT 0, PRIMARY KEY (lane, pos));
CREATE TABLE lease(
  id bigint PRIMARY KEY, token uuid NOT NULL, session bigint NOT NULL, started timestamptz NOT NULL DEFAULT clock_timestamp(),
  ids bigint[] NOT NULL, attempts smallint[] NOT NULL
) WITH (toast_tuple_target = 8160, fillfactor = 50);
ALTER TABLE lease ALTER ids SET STORAGE MAIN, ALTER attempts SET STORAGE MAIN;
CREATE INDEX lease_session ON lease(session);
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
-- name: settle
WITH l AS MATERIALIZED (SELECT * FROM lease WHERE id = $1 AND token = $2 FOR UPDATE),
h AS MATERIALIZED (SELECT u.i, u.n, x.o, x.i IS NOT NULL AS mine, l.session, l.started FROM l CROSS JOIN LATERAL unnest(l.ids, l.attempts) u(i, n) LEFT JOIN unnest($3, $4) x(i, o) ON x.i = u.i),
k AS (SELECT array_agg(i) AS ids, array_agg(n) AS attempts FROM h WHERE NOT mine),
lu AS (UPDATE lease SET ids = k.ids, attempts = k.attempts FROM k WHERE id = $1 AND k.ids IS NOT NULL),
ld AS (DELETE FROM lease USING k WHERE id = $1 AND k.ids IS NULL AND EXISTS (SELECT FROM l)),
r AS (INSERT INTO result(id, session, started, token, attempt, state, output) SELECT i, session, started, $2, n, 1, o FROM h WHERE mine),
a AS (INSERT INTO audit(kind, token, span, ids) SELECT 3, $2, int8range(min(i), max(i), '[]'), array_agg(i) FROM h WHERE mine HAVING count(*) > 0)
SELECT count(*) FROM h WHERE mine
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
-- name: promote
WITH d AS MATERIALIZED (SELECT ctid AS c FROM later WHERE due <= (SELECT clock_timestamp()) ORDER BY due LIMIT $1 FOR UPDATE SKIP LOCKED),
g AS (DELETE FROM later WHERE ctid = ANY (ARRAY(SELECT c FROM d)) RETURNING task, lane, attempt, due),
n AS MATERIALIZED (SELECT task, lane, attempt, nextval('pos_seq') AS pos FROM (SELECT * FROM g ORDER BY due) o),
u AS (UPDATE task t SET pos = n.pos FROM n WHERE t.id = n.task),
i AS (INSERT INTO ready(lane, pos, task, attempt) SELECT lane, pos, task, attempt FROM n)
SELECT count(*) FROM n
