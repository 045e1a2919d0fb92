-- Sessions that ended long ago and have nothing any more. By itself: a session that is in the way keeps nothing else from going.
-- $1 limit, $2 so long they are kept, in milliseconds
WITH s AS (DELETE FROM $schema$.session WHERE id = ANY (ARRAY(
    SELECT s.id FROM $schema$.session s
    WHERE s.state >= 2 AND s.renewed_at <= $schema$.now_() - $2::bigint * interval '1 millisecond'
        AND NOT EXISTS (SELECT FROM $schema$.lease e WHERE e.session = s.id)
    ORDER BY s.id LIMIT $1::int FOR UPDATE SKIP LOCKED)) RETURNING 1)
SELECT count(*) FROM s
