-- Each schedule of visits gets a share, so that one that is far behind does not keep the others waiting. Answers for each the next
-- visit after now, and the visits that are due. $1 now, $2 limit
WITH c AS MATERIALIZED (SELECT f.id FROM $schema$.schedule f WHERE NOT f.paused AND f.visits AND f.id > 0),
d AS MATERIALIZED (SELECT greatest(1, $2::int / greatest(1, (SELECT count(*) FROM c))) AS share)
SELECT c.id, (SELECT f.next_at FROM $schema$.visit f WHERE f.schedule = c.id AND f.next_at > $1::timestamptz ORDER BY f.next_at LIMIT 1),
    v.entity, v.every_ms, v.next_at, v.last_at
FROM c CROSS JOIN d LEFT JOIN LATERAL (
    SELECT f.* FROM $schema$.visit f WHERE f.schedule = c.id AND f.next_at <= $1::timestamptz ORDER BY f.next_at LIMIT d.share) v ON true
ORDER BY c.id, v.next_at
