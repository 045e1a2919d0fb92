-- Tasks whose audit entries do not lead from nothing to their state. $1/$2 ids [from, to), $3 parts of history
WITH s AS MATERIALIZED (
    SELECT id, state FROM $schema$.record_live_ WHERE id >= $1::bigint AND id < $2::bigint
    UNION ALL SELECT id, state FROM $schema$.history WHERE id >= $1::bigint AND id < $2::bigint AND part = ANY ($3::int[])),
e AS MATERIALIZED (
    SELECT task, seq, from_state, to_state FROM $schema$.audit_entry_
    WHERE span && int8range($1::bigint, $2::bigint) AND task >= $1::bigint AND task < $2::bigint),
a AS (
    SELECT task, seq, from_state, to_state, lag(to_state) OVER w AS before, row_number() OVER w AS n, lead(seq) OVER w IS NULL AS is_last
    FROM e WINDOW w AS (PARTITION BY task ORDER BY seq))
SELECT coalesce(a.task, s.id), CASE WHEN a.task IS NULL THEN 'has no entry'
        WHEN a.from_state IS DISTINCT FROM a.before AND NOT (a.n = 1 AND a.from_state IS NULL) THEN 'entry ' || a.seq || ' does not follow'
        ELSE 'ends in ' || a.to_state || ', not in ' || s.state END
FROM s LEFT JOIN a ON a.task = s.id
WHERE a.task IS NULL OR (a.from_state IS DISTINCT FROM a.before AND NOT (a.n = 1 AND a.from_state IS NULL)) OR (a.is_last AND a.to_state <> s.state)
LIMIT 20
