-- Waiting tasks over their start-by deadline. $1 limit
SELECT v.id, v.start_by FROM $schema$.live v
WHERE v.start_by <= (SELECT $schema$.now_())
    AND (EXISTS (SELECT FROM $schema$.ready r WHERE r.lane = v.lane AND r.pos = v.pos AND r.task = v.id OFFSET 0)
        OR EXISTS (SELECT FROM $schema$.later w WHERE w.task = v.id OFFSET 0))
ORDER BY v.start_by LIMIT $1::int
