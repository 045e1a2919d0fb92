-- Tells all about the tasks that are held with the given tokens. The leases were locked by an earlier statement: what others
-- wrote before they let go of them is seen here.
-- $1 distinct keys, sorted; $2 task, $3 key, $4 secret
WITH l AS MATERIALIZED (SELECT e.* FROM $schema$.lease e WHERE e.key = ANY ($1::bigint[]) ORDER BY e.key FOR UPDATE),
h AS MATERIALIZED (
    SELECT l.key, u.task, u.secret, u.flags, l.session, l.started_at
    FROM l CROSS JOIN LATERAL unnest(l.ids, l.secrets, l.flags) u(task, secret, flags))
SELECT v.id, v.lane, v.policy, (v.flags | h.flags)::int, coalesce(p.attempt, 0), coalesce(p.claim_no, 0), coalesce(p.generation, 1),
    coalesce(p.crash_count, 0), p.crash_from, coalesce(p.state, 0), p.error, h.key, h.secret, h.session, s.node, h.started_at,
    $schema$.now_(), v.timeout_ms, v.due_at, v.pos, v.created_at, v.explicit::int, coalesce(k.hostname, ''), coalesce(c.reason, '')
FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) x(task, key, secret)
JOIN h ON h.task = x.task AND h.key = x.key AND h.secret = x.secret
JOIN $row live v h.task$
LEFT JOIN $row past p h.task$
LEFT JOIN $row session s h.session$
LEFT JOIN $schema$.node_label k ON k.id = s.node
LEFT JOIN $row cancel_note c h.task$
