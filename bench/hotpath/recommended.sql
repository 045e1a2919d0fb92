-- The chosen physical shape (decision 0002) as DDL and statements; a model for the store, smoke-tested by recommended_test.sh.
-- Every access to a hot table is bounded by a parameter (id = ANY ($1)) even where a join would say the same: a generic plan made while the table
-- looks empty may otherwise scan its whole index, dead entries included.
-- name: schema
CREATE SCHEMA stint;
SET search_path = stint;
CREATE SEQUENCE task_id_seq INCREMENT 1000;        -- ids are reserved in blocks of 1000
CREATE SEQUENCE pos_seq;                           -- CACHE 1: positions are drawn in the order of time, which the rescan rule needs
CREATE SEQUENCE lease_id_seq;
CREATE TABLE session(id uuid PRIMARY KEY, state smallint NOT NULL DEFAULT 0, lease_until timestamptz NOT NULL) WITH (fillfactor = 50);   -- 0 live, 1 expired
CREATE TABLE lane(                                 -- one distinct head; inserted on first use, never updated; cached by every node
  id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  queue int NOT NULL, type int NOT NULL, tenant int NOT NULL DEFAULT 1, priority smallint NOT NULL DEFAULT 128,
  resources int[] NOT NULL DEFAULT '{}', labels text[] NOT NULL DEFAULT '{}',
  UNIQUE (queue, type, tenant, priority, resources, labels));
CREATE TABLE task(                                 -- written once; partition = (retention class by default, period), cut by id
  id bigint NOT NULL PRIMARY KEY, created timestamptz NOT NULL DEFAULT clock_timestamp(), pos bigint, lane int NOT NULL, input text
) PARTITION BY RANGE (id);
CREATE TABLE task_p0 PARTITION OF task FOR VALUES FROM (0) TO (100000000) WITH (fillfactor = 95);
CREATE TABLE task_rest PARTITION OF task DEFAULT;  -- what still lived when its period was dropped
CREATE TABLE result(                               -- one per finished task; its partition is dropped with the task's
  id bigint NOT NULL PRIMARY KEY, started timestamptz, finished timestamptz NOT NULL DEFAULT clock_timestamp(), session uuid, token uuid,
  attempt smallint NOT NULL, state smallint NOT NULL, output text
) PARTITION BY RANGE (id);
CREATE TABLE result_p0 PARTITION OF result FOR VALUES FROM (0) TO (100000000);
CREATE TABLE result_rest PARTITION OF result DEFAULT;
CREATE TABLE attempt(                              -- every attempt but the plain success, which is the result row
  task bigint NOT NULL, started timestamptz NOT NULL, ended timestamptz NOT NULL DEFAULT clock_timestamp(), session uuid NOT NULL, token uuid NOT NULL,
  attempt smallint NOT NULL, outcome smallint NOT NULL, signal smallint, error text, PRIMARY KEY (task, attempt)
) PARTITION BY RANGE (task);
CREATE TABLE attempt_p0 PARTITION OF attempt FOR VALUES FROM (0) TO (100000000);
CREATE TABLE attempt_rest PARTITION OF attempt DEFAULT;
CREATE TABLE ready(pos bigint NOT NULL, task bigint NOT NULL, lane int NOT NULL, attempt smallint NOT NULL DEFAULT 0, PRIMARY KEY (lane, pos))
  WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE later(due timestamptz NOT NULL, task bigint PRIMARY KEY, lane int NOT NULL, attempt smallint NOT NULL DEFAULT 0);
CREATE INDEX later_due ON later(due, task);
CREATE TABLE lease(
  id bigint PRIMARY KEY, started timestamptz NOT NULL DEFAULT clock_timestamp(), token uuid NOT NULL, session uuid NOT NULL,
  ids bigint[] NOT NULL, attempts smallint[] NOT NULL
) WITH (fillfactor = 50, toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE lease ALTER ids SET STORAGE MAIN, ALTER attempts SET STORAGE MAIN;
CREATE INDEX lease_session ON lease(session);
CREATE TABLE slot(resource int NOT NULL, no int NOT NULL, lease bigint, task bigint, PRIMARY KEY (resource, no)) WITH (fillfactor = 50);
CREATE TABLE audit(                                -- partitioned by period of at in the store
  at timestamptz NOT NULL DEFAULT clock_timestamp(), kind smallint NOT NULL, session uuid, token uuid, span int8range NOT NULL, ids bigint[] NOT NULL
) WITH (toast_tuple_target = 8160);
ALTER TABLE audit ALTER ids SET STORAGE MAIN;
CREATE INDEX audit_span ON audit USING gist (span);
CREATE VIEW audit_entry AS SELECT at, kind, session, token, unnest(ids) AS task FROM audit;
-- name: submit
-- $1 ids, $2 lanes, $3 inputs. The first CTE gives the transaction its xid before a position is drawn.
WITH x AS MATERIALIZED (SELECT pg_current_xact_id() AS xid),
t AS (INSERT INTO task(id, lane, pos, input) SELECT u.i, u.l, nextval('pos_seq'), u.p FROM (SELECT xid FROM x OFFSET 0) x, unnest($1::bigint[], $2::int[], $3::text[]) u(i, l, p) WHERE x.xid IS NOT NULL RETURNING id, lane, pos),
r AS (INSERT INTO ready(lane, pos, task) SELECT lane, pos, id FROM t)
INSERT INTO audit(kind, span, ids) SELECT 1, int8range(min(id), max(id), '[]'), array_agg(id) FROM t HAVING count(*) > 0
-- name: claim
-- $1 session, $2 limit, $3 token (fresh, random, made by the caller), $4/$5 lanes and their marks, $6 types, $7 labels, $8 tasks per tenant, $9 first tenant
WITH s AS MATERIALIZED (SELECT id FROM session WHERE id = $1::uuid AND state = 0 AND lease_until > clock_timestamp() FOR KEY SHARE),
m AS MATERIALIZED (
  SELECT id, max(priority) AS priority, max(tenant) AS tenant, max(mark) AS mark FROM (
    SELECT l.id, l.priority, l.tenant, 0::bigint AS mark FROM s, lane l
    WHERE l.type = ANY ($6::int[]) AND l.labels <@ $7::text[]
      AND NOT EXISTS (SELECT FROM unnest(l.resources) q WHERE NOT EXISTS (SELECT FROM slot f WHERE f.resource = q AND f.lease IS NULL))
    UNION ALL SELECT lane, NULL, NULL, mark FROM unnest($4::int[], $5::bigint[]) k(lane, mark)) x
  GROUP BY id HAVING max(priority) IS NOT NULL),
h AS MATERIALIZED (
  SELECT priority, tenant, array_agg(id) AS lanes, array_agg(mark) AS marks FROM m
  GROUP BY priority, tenant ORDER BY priority DESC, tenant < $9::int, tenant),
p AS MATERIALIZED (
  SELECT r.c FROM h CROSS JOIN LATERAL (
    SELECT q.c FROM unnest(h.lanes, h.marks) l(lane, mark) CROSS JOIN LATERAL (
      SELECT t.ctid AS c, t.pos FROM ready t WHERE t.lane = l.lane AND t.pos > l.mark ORDER BY t.pos LIMIT $8::int FOR UPDATE SKIP LOCKED) q
    ORDER BY q.pos LIMIT $8::int) r
  LIMIT $2::int),
g AS (DELETE FROM ready WHERE ctid = ANY (ARRAY(SELECT c FROM p)) RETURNING task, lane, pos, attempt),
b AS (INSERT INTO lease(id, token, session, ids, attempts)
      SELECT nextval('lease_id_seq'), $3::uuid, $1::uuid, array_agg(task), array_agg((attempt + 1)::smallint) FROM g HAVING count(*) > 0 RETURNING id, ids),
a AS (INSERT INTO audit(kind, session, token, span, ids) SELECT 2, $1::uuid, $3::uuid, int8range((SELECT min(i) FROM unnest(ids) i), (SELECT max(i) FROM unnest(ids) i), '[]'), ids FROM b)
SELECT g.task, b.id AS lease, g.lane, g.pos, g.attempt + 1 AS attempt, t.input FROM b, g JOIN task t ON t.id = g.task
-- name: complete
-- $1/$2 leases and their tokens, $3 task ids, $4 outputs. Returns the accepted ids: an id that is missing has lost its lease.
WITH l AS MATERIALIZED (SELECT e.id, e.token, e.session, e.started, e.ids, e.attempts FROM lease e WHERE e.id = ANY ($1::bigint[]) AND e.token = ($2::uuid[])[array_position($1::bigint[], e.id)] ORDER BY e.id FOR UPDATE),
h AS MATERIALIZED (SELECT l.id AS lease, l.token, l.session, l.started, u.i, u.n, x.o, x.i IS NOT NULL AS mine
  FROM l CROSS JOIN LATERAL unnest(l.ids, l.attempts) u(i, n) LEFT JOIN unnest($3::bigint[], $4::text[]) x(i, o) ON x.i = u.i),
k AS (SELECT lease, array_agg(i) FILTER (WHERE NOT mine) AS ids, array_agg(n) FILTER (WHERE NOT mine) AS attempts FROM h GROUP BY lease HAVING bool_or(mine)),
lu AS (UPDATE lease e SET ids = k.ids, attempts = k.attempts FROM k WHERE e.id = ANY ($1::bigint[]) AND e.id = k.lease AND k.ids IS NOT NULL),
ld AS (DELETE FROM lease e USING k WHERE e.id = ANY ($1::bigint[]) AND e.id = k.lease AND k.ids IS NULL),
r AS (INSERT INTO result(id, session, started, token, attempt, state, output) SELECT i, session, started, token, n, 1, o FROM h WHERE mine),
a AS (INSERT INTO audit(kind, session, token, span, ids) SELECT 3, session, token, int8range(min(i), max(i), '[]'), array_agg(i) FROM h WHERE mine GROUP BY session, token)
SELECT i FROM h WHERE mine
-- name: retry
-- $1/$2 leases and tokens, $3 task ids, $4 delays in ms, $5 errors. As complete, but the task waits in later and the attempt gets its row.
WITH l AS MATERIALIZED (SELECT e.id, e.token, e.session, e.started, e.ids, e.attempts FROM lease e WHERE e.id = ANY ($1::bigint[]) AND e.token = ($2::uuid[])[array_position($1::bigint[], e.id)] ORDER BY e.id FOR UPDATE),
h AS MATERIALIZED (SELECT l.id AS lease, l.token, l.session, l.started, u.i, u.n, x.delay, x.error, x.i IS NOT NULL AS mine
  FROM l CROSS JOIN LATERAL unnest(l.ids, l.attempts) u(i, n) LEFT JOIN unnest($3::bigint[], $4::bigint[], $5::text[]) x(i, delay, error) ON x.i = u.i),
k AS (SELECT lease, array_agg(i) FILTER (WHERE NOT mine) AS ids, array_agg(n) FILTER (WHERE NOT mine) AS attempts FROM h GROUP BY lease HAVING bool_or(mine)),
lu AS (UPDATE lease e SET ids = k.ids, attempts = k.attempts FROM k WHERE e.id = ANY ($1::bigint[]) AND e.id = k.lease AND k.ids IS NOT NULL),
ld AS (DELETE FROM lease e USING k WHERE e.id = ANY ($1::bigint[]) AND e.id = k.lease AND k.ids IS NULL),
n AS (INSERT INTO attempt(task, started, session, token, attempt, outcome, error) SELECT i, started, session, token, n, 2, error FROM h WHERE mine),
w AS (INSERT INTO later(due, task, lane, attempt) SELECT clock_timestamp() + h.delay * interval '1 ms', h.i, t.lane, h.n FROM h JOIN task t ON t.id = h.i WHERE h.mine),
a AS (INSERT INTO audit(kind, session, token, span, ids) SELECT 6, session, token, int8range(min(i), max(i), '[]'), array_agg(i) FROM h WHERE mine GROUP BY session, token)
SELECT i FROM h WHERE mine
-- name: release
-- after complete or retry, same transaction, only when a lane of the batch needs resources: $1 leases, $2 accepted ids
UPDATE slot SET lease = NULL, task = NULL WHERE lease = ANY ($1::bigint[]) AND task = ANY ($2::bigint[])
-- name: promote
-- $1 limit. Due tasks get a new position and go to the end of their lane. Any node, every poll.
WITH d AS MATERIALIZED (SELECT ctid AS c FROM later WHERE due <= (SELECT clock_timestamp()) ORDER BY due, task LIMIT $1::int FOR UPDATE SKIP LOCKED),
g AS (DELETE FROM later WHERE ctid = ANY (ARRAY(SELECT c FROM d)) RETURNING task, lane, attempt, due),
n AS MATERIALIZED (SELECT task, lane, attempt, nextval('pos_seq') AS pos FROM (SELECT * FROM g ORDER BY due, task) o),
u AS (UPDATE task t SET pos = n.pos FROM n WHERE t.id = n.task),
i AS (INSERT INTO ready(lane, pos, task, attempt) SELECT lane, pos, task, attempt FROM n)
SELECT count(*) FROM n
-- name: expire
-- first statement of a reclaim: $1 session. No row: it is alive, or another sweeper has it.
UPDATE session SET state = 1 WHERE id = (SELECT id FROM session WHERE id = $1::uuid AND state = 0 AND lease_until < (SELECT clock_timestamp()) FOR UPDATE SKIP LOCKED) RETURNING id
-- name: reclaim
-- second statement, same transaction: $1 session, $2 outcome. A new snapshot: it sees every claim that committed under the session.
WITH l AS (DELETE FROM lease WHERE session = $1::uuid RETURNING id, token, session, started, ids, attempts),
h AS MATERIALIZED (SELECT l.id AS lease, l.token, l.session, l.started, u.i, u.n, t.lane FROM l CROSS JOIN LATERAL unnest(l.ids, l.attempts) u(i, n) JOIN task t ON t.id = u.i),
n AS (INSERT INTO attempt(task, started, session, token, attempt, outcome) SELECT i, started, session, token, n, $2::smallint FROM h),
q AS MATERIALIZED (SELECT i, lane, n, nextval('pos_seq') AS pos FROM h),
u AS (UPDATE task t SET pos = q.pos FROM q WHERE t.id = q.i),
r AS (INSERT INTO ready(lane, pos, task, attempt) SELECT lane, pos, i, n FROM q),
f AS (UPDATE slot SET lease = NULL, task = NULL FROM l WHERE slot.lease = l.id),
a AS (INSERT INTO audit(kind, session, token, span, ids) SELECT 7, session, token, int8range(min(i), max(i), '[]'), array_agg(i) FROM h GROUP BY session, token)
SELECT i FROM h
