-- Takes blocked and background tasks back in, and tells all about them. $1 ids, sorted
WITH c AS MATERIALIZED (SELECT o.ctid AS tid FROM $schema$.outside o WHERE o.task = ANY ($1::bigint[]) ORDER BY o.task FOR UPDATE),
h AS (DELETE FROM $schema$.outside WHERE ctid = ANY (ARRAY(SELECT tid FROM c)) RETURNING *)
SELECT v.id, v.lane, v.policy, v.flags::int | (p.task IS NOT NULL)::int, coalesce(p.attempt, 0), coalesce(p.claim_no, 0), coalesce(p.generation, 1),
    coalesce(p.crash_count, 0), p.crash_from, h.state, p.error, h.key, h.secret, h.session, p.node, p.claimed_at,
    $schema$.now_(), v.timeout_ms, v.due_at, v.pos, v.created_at, v.explicit::int, '', ''
FROM h JOIN $row live v h.task$ LEFT JOIN $row past p h.task$
ORDER BY v.id
