-- Takes tasks out of ready and later, and tells all about them. What somebody else is taking is waited for and then not
-- returned, even if it only went from later to ready: look again. $1 ids, sorted; $2 states
WITH c AS MATERIALIZED (
    SELECT r.tid, r.task, r.flags FROM (
        SELECT v.id, v.lane, v.pos FROM $schema$.live v LEFT JOIN $row past p v.id$
        WHERE v.id = ANY ($1::bigint[]) AND coalesce(p.state, 0) = ANY ($2::smallint[]) ORDER BY v.id) v
    CROSS JOIN LATERAL (
        SELECT f.ctid AS tid, f.task, f.flags FROM $schema$.ready f WHERE f.lane = v.lane AND f.pos = v.pos AND f.task = v.id FOR UPDATE) r),
d AS MATERIALIZED (
    SELECT w.ctid AS tid, w.task, w.flags FROM $schema$.later w LEFT JOIN $row past p w.task$
    WHERE w.task = ANY ($1::bigint[]) AND coalesce(p.state, 0) = ANY ($2::smallint[]) ORDER BY w.task FOR UPDATE OF w),
r AS (DELETE FROM $schema$.ready WHERE ctid = ANY (ARRAY(SELECT tid FROM c)) RETURNING task, flags),
w AS (DELETE FROM $schema$.later WHERE ctid = ANY (ARRAY(SELECT tid FROM d)) RETURNING task, flags),
h AS MATERIALIZED (SELECT task, flags FROM r UNION ALL SELECT task, flags FROM w)
SELECT v.id, v.lane, v.policy, (v.flags | h.flags)::int, coalesce(p.attempt, 0), coalesce(p.claim_no, 0), coalesce(p.generation, 1),
    coalesce(p.crash_count, 0), p.crash_from, coalesce(p.state, 0), p.error, NULL::bigint, NULL::bigint, NULL::uuid, p.node, p.claimed_at,
    $schema$.now_(), v.timeout_ms, v.due_at, v.pos, v.created_at, v.explicit::int, '', ''
FROM h JOIN $row live v h.task$ LEFT JOIN $row past p h.task$
ORDER BY v.id
