-- Tasks whose audit entries do not lead from nothing to their state. $1/$2 ids [from, to), $3 parts of history.
-- A task's state comes as the last of its entries: one sort, where a join of the two would be planned as a loop in a loop.
WITH e AS (
    SELECT task, seq, from_state, to_state, NULL::smallint AS state FROM $schema$.audit_entry_
    WHERE span && int8range($1::bigint, $2::bigint) AND task >= $1::bigint AND task < $2::bigint
    UNION ALL
    SELECT id, NULL, NULL, NULL, state FROM $schema$.record_live_ WHERE id >= $1::bigint AND id < $2::bigint
    UNION ALL
    SELECT id, NULL, NULL, NULL, state FROM $schema$.history WHERE id >= $1::bigint AND id < $2::bigint AND part = ANY ($3::int[])),
a AS (
    SELECT task, seq, from_state, state, lag(to_state) OVER w AS before, row_number() OVER w AS n,
        last_value(state) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) IS NOT NULL AS is_there
    FROM e WINDOW w AS (PARTITION BY task ORDER BY seq NULLS LAST))
SELECT task, CASE WHEN state IS NULL THEN 'entry ' || seq || ' does not follow' WHEN n = 1 THEN 'has no entry'
        ELSE 'ends in ' || before || ', not in ' || state END
FROM a
WHERE is_there AND (
    (state IS NULL AND from_state IS DISTINCT FROM before AND NOT (n = 1 AND from_state IS NULL))
    OR (state IS NOT NULL AND before IS DISTINCT FROM state))
LIMIT 20
