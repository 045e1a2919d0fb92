-- The newest round of each key, or what is remembered of one that fired once, or, as one that is expired, the highest
-- generation that is forgotten; the keys are locked. $1 tenant, $2 workflow, $3 name, $4 key
SELECT coalesce(r.id, 0), u.tenant, u.workflow, u.name, u.key, coalesce(r.generation, o.generation, g.generation), coalesce(r.mask, 0),
    coalesce(r.state, CASE WHEN o.generation IS NULL THEN 2 ELSE 1 END),
    r.task, r.message, coalesce(r.created_at, 'epoch'), coalesce(r.expires_at, 'epoch'), r.ended_at
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[]) u(tenant, workflow, name, key)
LEFT JOIN LATERAL (
    SELECT x.* FROM $schema$.join_round x WHERE x.tenant = u.tenant AND x.workflow = u.workflow AND x.name = u.name AND x.key = u.key
    ORDER BY x.generation DESC LIMIT 1) r ON true
LEFT JOIN LATERAL (
    SELECT x.generation FROM $schema$.join_once x WHERE x.tenant = u.tenant AND x.workflow = u.workflow AND x.name = u.name AND x.key = u.key
    OFFSET 0) o ON true
LEFT JOIN LATERAL (
    SELECT x.generation FROM $schema$.join_once x WHERE x.tenant = 0 AND x.workflow = '' AND x.name = '' AND x.key = ''
    OFFSET 0) g ON true
WHERE r.id IS NOT NULL OR o.generation IS NOT NULL OR g.generation IS NOT NULL
