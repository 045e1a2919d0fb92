-- $1 so long over, in milliseconds; $2 limit
DELETE FROM $schema$.ordered z WHERE z.task = ANY (ARRAY(
    SELECT o.task FROM $schema$.ordered o WHERE o.over_at <= $schema$.now_() - $1::bigint * interval '1 millisecond' LIMIT $2::int))
