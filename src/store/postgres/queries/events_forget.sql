-- $1 kept, ms, $2 limit
WITH d AS (
    DELETE FROM $schema$.published WHERE ctid = ANY (ARRAY(
        SELECT e.ctid FROM $schema$.published e WHERE e.processed_at <= (SELECT $schema$.now_() - $1::bigint * interval '1 millisecond')
        ORDER BY e.processed_at LIMIT $2::int FOR UPDATE SKIP LOCKED)) RETURNING no),
f AS (DELETE FROM $schema$.firing g WHERE g.event = ANY (ARRAY(SELECT no FROM d)))
SELECT count(*) FROM d
