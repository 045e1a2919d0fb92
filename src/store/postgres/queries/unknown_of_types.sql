-- Live tasks that were accepted before their type was known. $1 types, $2 limit, $3 after, $4 only those that never ran
SELECT v.id, v.explicit, l.type FROM $schema$.live v JOIN $schema$.lane l ON l.id = v.lane
WHERE (v.flags & 32) <> 0 AND v.id > $3::bigint AND v.lane = ANY (ARRAY(SELECT k.id FROM $schema$.lane k WHERE k.type = ANY ($1::text[])))
    AND NOT ($4::boolean AND EXISTS (SELECT FROM $schema$.past p WHERE p.task = v.id OFFSET 0))
ORDER BY v.id LIMIT $2::int
