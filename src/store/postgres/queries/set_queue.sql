-- $1 name, $2 paused, $3 cap, $4 keep_complete_ms, $5 keep_dead_ms, $6 keep_cancelled_ms. Retention classes are made as needed.
WITH k AS MATERIALIZED (SELECT DISTINCT x.ms FROM (VALUES ($4::bigint), ($5::bigint), ($6::bigint)) x(ms) WHERE x.ms IS NOT NULL),
m AS MATERIALIZED (SELECT max(class) AS last FROM $schema$.retention),
c AS (
    INSERT INTO $schema$.retention(class, keep_ms)
    SELECT (m.last + row_number() OVER (ORDER BY k.ms))::smallint, k.ms FROM k, m WHERE NOT EXISTS (SELECT FROM $schema$.retention r WHERE r.keep_ms = k.ms)
    RETURNING class, keep_ms),
r AS MATERIALIZED (SELECT class, keep_ms FROM $schema$.retention UNION ALL SELECT class, keep_ms FROM c)
INSERT INTO $schema$.queue(name, paused, cap, keep_complete_ms, keep_dead_ms, keep_cancelled_ms, class_complete, class_dead, class_cancelled)
SELECT $1::text, $2::boolean, $3::bigint, $4::bigint, $5::bigint, $6::bigint,
    coalesce((SELECT class FROM r WHERE keep_ms = $4::bigint), 0), coalesce((SELECT class FROM r WHERE keep_ms = $5::bigint), 0),
    coalesce((SELECT class FROM r WHERE keep_ms = $6::bigint), 0)
ON CONFLICT (name) DO UPDATE SET paused = excluded.paused, cap = excluded.cap, keep_complete_ms = excluded.keep_complete_ms,
    keep_dead_ms = excluded.keep_dead_ms, keep_cancelled_ms = excluded.keep_cancelled_ms, class_complete = excluded.class_complete,
    class_dead = excluded.class_dead, class_cancelled = excluded.class_cancelled
