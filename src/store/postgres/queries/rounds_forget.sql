-- The highest generation of those that are forgotten stays, in a row of no join's. $1 kept, ms, $2 limit
WITH d AS (
    DELETE FROM $schema$.join_round WHERE ctid = ANY (ARRAY(
        SELECT r.ctid FROM $schema$.join_round r WHERE r.ended_at <= (SELECT $schema$.now_() - $1::bigint * interval '1 millisecond')
        ORDER BY r.ended_at LIMIT $2::int FOR UPDATE SKIP LOCKED)) RETURNING id, generation),
p AS (DELETE FROM $schema$.join_part x WHERE x.round = ANY (ARRAY(SELECT id FROM d))),
g AS (
    INSERT INTO $schema$.join_once AS o (tenant, workflow, name, key, generation)
    SELECT 0, '', '', '', max(d.generation) FROM d HAVING count(*) > 0
    ON CONFLICT (tenant, workflow, name, key) DO UPDATE SET generation = greatest(o.generation, excluded.generation))
SELECT count(*) FROM d
