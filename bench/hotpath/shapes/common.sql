-- Tables that every shape shares: sessions, lanes, positions and the audit in one physical row per batch.
CREATE SEQUENCE pos_seq;
CREATE SEQUENCE lease_seq;
CREATE TABLE session(
  id bigint PRIMARY KEY,
  live boolean NOT NULL,
  lease_until timestamptz NOT NULL
) WITH (fillfactor = 50);
INSERT INTO session SELECT g, true, clock_timestamp() + interval '1 day' FROM generate_series(1, 16) g;
-- A lane is one distinct head: everything that decides whether and when a claimer may take a task, priority included.
CREATE TABLE lane(
  id int PRIMARY KEY,
  priority smallint NOT NULL DEFAULT 128,
  tenant int NOT NULL DEFAULT 1,
  type int NOT NULL DEFAULT 1,
  labels text[] NOT NULL DEFAULT '{}',
  resource int                      -- NULL: needs none
);
INSERT INTO lane(id) VALUES (1);
CREATE TABLE audit(
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  kind smallint NOT NULL,           -- 1 submit, 2 claim, 3 complete, 4 cancel, 5 edit
  session bigint,
  token uuid,
  span int8range NOT NULL,          -- [lowest id, highest id] of the batch
  ids bigint[] NOT NULL
) WITH (toast_tuple_target = 8160);
ALTER TABLE audit ALTER ids SET STORAGE MAIN;   -- random-looking arrays do not compress; keep them in the row
CREATE INDEX audit_span ON audit USING gist (span);
-- One audit entry per transition, lookup by task: WHERE span @> $id AND $id = ANY(ids).
CREATE VIEW audit_entry AS SELECT at, kind, session, token, unnest(ids) AS task FROM audit;
