-- $1 kept, ms, $2 limit
WITH d AS (
    DELETE FROM $schema$.join_round WHERE ctid = ANY (ARRAY(
        SELECT r.ctid FROM $schema$.join_round r WHERE r.ended_at <= (SELECT $schema$.now_() - $1::bigint * interval '1 millisecond')
        ORDER BY r.ended_at LIMIT $2::int FOR UPDATE SKIP LOCKED)) RETURNING id),
p AS (DELETE FROM $schema$.join_part x WHERE x.round = ANY (ARRAY(SELECT id FROM d)))
SELECT count(*) FROM d
