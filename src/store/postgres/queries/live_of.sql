-- The rows of record_live_ for some ids, each looked up by its key. $1 ids
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
    greatest(v.created_at, p.updated_at, h.started_at) AS updated_at, v.lane,
    coalesce(y.pending, 0) AS waiting_for, v.flags::int AS flags, x.key AS order_key, x.on_failed, l.placement
FROM $schema$.live v
JOIN $schema$.lane l ON l.id = v.lane
JOIN $schema$.queue q ON q.id = l.queue
LEFT JOIN LATERAL (SELECT f.task FROM $schema$.ready f WHERE f.lane = v.lane AND f.pos = v.pos AND f.task = v.id OFFSET 0) r ON true
LEFT JOIN $row later w v.id$
LEFT JOIN $row outside o v.id$
LEFT JOIN $row past p v.id$
LEFT JOIN (SELECT u.task, u.secret, u.flags, e.session, e.started_at FROM $schema$.lease e
           CROSS JOIN LATERAL unnest(e.ids, e.secrets, e.flags) u(task, secret, flags)) h ON h.task = v.id
LEFT JOIN $row session s h.session$
LEFT JOIN LATERAL (SELECT f.* FROM $schema$.progress f WHERE f.task = v.id AND f.secret = h.secret OFFSET 0) g ON true
LEFT JOIN LATERAL (SELECT f.pending FROM $schema$.wait f WHERE f.task = v.id AND f.open OFFSET 0) y ON true
LEFT JOIN LATERAL (SELECT f.key, f.on_failed FROM $schema$.ordered f WHERE f.task = v.id AND (v.flags & 4096) <> 0 OFFSET 0) x ON true
WHERE v.id = ANY ($1::bigint[])
