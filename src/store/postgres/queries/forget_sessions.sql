-- $1 kept_ms, $2 limit
DELETE FROM $schema$.session WHERE id = ANY (ARRAY(
    SELECT s.id FROM $schema$.session s
    WHERE s.state >= 2 AND s.renewed_at <= $schema$.now_() - $1::bigint * interval '1 millisecond'
        AND NOT EXISTS (SELECT FROM $schema$.lease e WHERE e.session = s.id)
    ORDER BY s.id LIMIT $2::int FOR UPDATE SKIP LOCKED))
