-- $1 task, $2 periods, $3 parts of history
SELECT a.task, a.claim_no, a.attempt, a.generation, a.ending, a.alone, a.started_at, a.finished_at, a.session, a.node, a.exit_code, a.exit_signal,
    a.error, a.stderr_tail
FROM $schema$.attempt a WHERE a.task = $1::bigint AND a.part = ANY ($2::int[])
UNION ALL
SELECT h.id, h.claim_no, h.attempt, h.generation, h.ending, h.alone, h.claimed_at, h.finished_at, h.session, h.node, h.exit_code, h.exit_signal,
    CASE WHEN h.ending <> 1 THEN h.error END, h.stderr_tail
FROM $schema$.history h WHERE h.id = $1::bigint AND h.part = ANY ($3::int[]) AND h.ending IS NOT NULL
UNION ALL
SELECT u.task, coalesce(p.claim_no, 0) + 1, coalesce(p.attempt, 0) + 1, coalesce(p.generation, 1), 0, (u.flags & 64) <> 0, e.started_at, NULL,
    e.session, s.node, NULL, NULL, NULL, NULL
FROM $schema$.lease e CROSS JOIN LATERAL unnest(e.ids, e.flags) u(task, flags) LEFT JOIN $row past p u.task$
LEFT JOIN $row session s e.session$
WHERE u.task = $1::bigint
ORDER BY 2
