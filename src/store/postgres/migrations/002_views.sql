-- Reading. The views without an underscore at the end are the supported contract for people and tools.

-- One row per live task, with where it is.
CREATE VIEW $schema$.record_live_ AS
SELECT v.id, l.tenant, v.parent, l.type, q.name AS queue,
    (CASE WHEN o.task IS NOT NULL THEN o.state
          WHEN r.task IS NOT NULL OR w.task IS NOT NULL THEN coalesce(p.state, 0::smallint)
          ELSE 1::smallint END) AS state,
    l.priority, v.input, NULL::text AS output, p.error,
    coalesce(o.reason, '') AS reason, false AS warning, (v.flags & 32) = 0 AS type_known,
    coalesce(h.flags & 4, 0) <> 0 AS cancel_requested, l.suspect,
    coalesce(p.attempt, 0) + (h.task IS NOT NULL)::int AS attempt,
    coalesce(p.claim_no, 0) + (h.task IS NOT NULL)::int AS claim_no,
    coalesce(p.generation, 1) AS generation, coalesce(p.crash_count, 0) AS crash_count,
    v.tags, v.unique_key, v.idem_key, v.policy, v.timeout_ms,
    CASE WHEN g.task IS NOT NULL THEN json_build_object('step', g.step, 'done', g.done, 'total', g.total, 'message', g.message)::text END AS progress,
    h.session, coalesce(s.node, p.node) AS node, v.created_at,
    v.due_at, v.start_by, coalesce(h.started_at, p.claimed_at) AS claimed_at, NULL::timestamptz AS finished_at,
    coalesce(s.lease_until, o.expires_at) AS expires_at,
    greatest(v.created_at, p.updated_at, h.started_at) AS updated_at, v.lane
FROM $schema$.live v
JOIN $schema$.lane l ON l.id = v.lane
JOIN $schema$.queue q ON q.id = l.queue
LEFT JOIN $schema$.ready r ON r.lane = v.lane AND r.pos = v.pos AND r.task = v.id
LEFT JOIN $schema$.later w ON w.task = v.id
LEFT JOIN $schema$.outside o ON o.task = v.id
LEFT JOIN $schema$.past p ON p.task = v.id
LEFT JOIN (SELECT u.task, u.secret, u.flags, e.session, e.started_at FROM $schema$.lease e
           CROSS JOIN LATERAL unnest(e.ids, e.secrets, e.flags) u(task, secret, flags)) h ON h.task = v.id
LEFT JOIN $schema$.session s ON s.id = h.session
LEFT JOIN $schema$.progress g ON g.task = v.id AND g.secret = h.secret;

-- One row per finished task, same columns.
CREATE VIEW $schema$.record_history_ AS
SELECT v.id, l.tenant, v.parent, l.type, q.name AS queue, v.state, l.priority, v.input, v.output, v.error,
    coalesce(v.reason, '') AS reason, v.warning, (v.flags & 32) = 0 AS type_known, (v.flags & 4) <> 0 AS cancel_requested,
    false AS suspect, v.attempt, v.claim_no, v.generation, v.crash_count, v.tags, v.unique_key, v.idem_key, v.policy,
    v.timeout_ms, NULL::text AS progress, NULL::uuid AS session, v.node, v.created_at, v.due_at, v.start_by, v.claimed_at,
    v.finished_at, NULL::timestamptz AS expires_at, v.finished_at AS updated_at, v.lane, v.part
FROM $schema$.history v
JOIN $schema$.lane l ON l.id = v.lane
JOIN $schema$.queue q ON q.id = l.queue;

-- One row per transition.
CREATE VIEW $schema$.audit_entry_ AS
SELECT a.seq + u.n - 1 AS seq, u.task, a.tenant, a.from_state, a.to_state, a.event, a.attempt, a.generation,
    a.session, coalesce(a.actor, '') AS actor, coalesce(a.reason, '') AS reason, a.at, a.span, a.seq AS row_seq
FROM $schema$.audit a CROSS JOIN LATERAL unnest(a.ids) WITH ORDINALITY u(task, n);

-- JSON or NULL: payloads are stored as the bytes that were sent.
CREATE FUNCTION $schema$.to_jsonb_(body text) RETURNS jsonb LANGUAGE sql IMMUTABLE AS
    'SELECT CASE WHEN body IS NULL OR body = '''' THEN NULL ELSE body::jsonb END';

CREATE VIEW $schema$.task AS
SELECT t.id, t.tenant AS tenant_id, t.parent AS parent_id, t.type, t.state AS status, t.priority,
    $schema$.to_jsonb_(t.input) AS input, $schema$.to_jsonb_(coalesce(t.output, t.error)) AS output,
    ($schema$.to_jsonb_(t.error) ->> 'retryable')::boolean AS retryable,
    greatest(t.attempt - 1, 0) AS retry_count, t.node AS executor, t.created_at, t.claimed_at,
    t.finished_at AS completed_at, t.expires_at,
    t.queue, t.due_at, t.start_by, t.attempt, t.claim_no, t.generation, t.updated_at, t.tags, t.unique_key,
    t.session AS lease_owner, CASE WHEN t.state = 1 THEN t.expires_at END AS lease_timeout, t.attempt AS try_count,
    nullif(coalesce((y.retry::jsonb ->> 'max_attempts')::int, 20), 0) AS max_tries,
    CASE WHEN t.state = 1 THEN 'running' WHEN t.state = 4 THEN 'done' WHEN t.state IN (6, 7) THEN 'error' ELSE 'pending' END AS worker_status,
    t.reason, t.warning, $schema$.to_jsonb_(t.error) AS error, t.cancel_requested,
    CASE WHEN t.finished_at IS NOT NULL THEN t.finished_at - t.claimed_at END AS run_time
FROM (
    SELECT id, tenant, parent, type, queue, state, priority, input, output, error, reason, warning, attempt, claim_no, generation, tags,
        unique_key, policy, session, node, created_at, due_at, start_by, claimed_at, finished_at, expires_at, updated_at, cancel_requested
    FROM $schema$.record_live_
    UNION ALL
    SELECT id, tenant, parent, type, queue, state, priority, input, output, error, reason, warning, attempt, claim_no, generation, tags,
        unique_key, policy, session, node, created_at, due_at, start_by, claimed_at, finished_at, expires_at, updated_at, cancel_requested
    FROM $schema$.record_history_
) t LEFT JOIN $schema$.policy y ON y.id = t.policy;

CREATE VIEW $schema$.node AS SELECT id, hostname, last_seen FROM $schema$.node_label;

CREATE VIEW $schema$.audit_logs AS
SELECT a.seq AS id, a.task AS task_id, a.tenant AS tenant_id, f.code AS from_status, t.code AS to_status, e.name AS event,
    a.attempt, a.generation, a.session, a.actor, a.reason, a.at AS created_at
FROM $schema$.audit_entry_ a
JOIN $schema$.event_name e ON e.id = a.event
JOIN $schema$.task_status t ON t.id = a.to_state
LEFT JOIN $schema$.task_status f ON f.id = a.from_state;

-- Dependencies, resources and joins have their columns; rows come with those features.
CREATE VIEW $schema$.task_task_dep AS SELECT NULL::bigint AS task_id, NULL::bigint AS depends_on WHERE false;
CREATE VIEW $schema$.task_resource AS SELECT NULL::smallint AS id, NULL::text AS name, NULL::int AS max_concurrency WHERE false;
CREATE VIEW $schema$.task_resource_dep AS SELECT NULL::bigint AS task_id, NULL::smallint AS depends_on WHERE false;
CREATE VIEW $schema$.task_joins AS
SELECT NULL::varchar(256) AS join_key, NULL::varchar(128) AS workflow_id, NULL::varchar(128) AS task_type,
    NULL::bigint AS task_id, NULL::timestamptz AS completed_at WHERE false;
