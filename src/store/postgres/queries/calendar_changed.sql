-- The schedules that name it are looked at at once. What was due before is still to be decided; what was excluded is not made up for.
-- $1 tenant, $2 name
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
h AS MATERIALIZED (
    SELECT f.id FROM $schema$.schedule f WHERE f.tenant = $1::bigint AND NOT f.visits AND f.spec::jsonb -> 'except' ? $2::text
    ORDER BY f.id FOR UPDATE)
UPDATE $schema$.schedule s SET turn = s.turn + 1, next_at = least(s.next_at, n.t),
    considered_at = CASE WHEN s.next_at <= n.t THEN s.considered_at ELSE greatest(s.considered_at, n.t) END
FROM n WHERE s.id = ANY (ARRAY(SELECT h.id FROM h))
