-- What settling transactions have added to the counts goes into the sums, $1 rows at most.
WITH d AS (
    DELETE FROM $schema$.history_change WHERE ctid = ANY (ARRAY(SELECT c.ctid FROM $schema$.history_change c LIMIT $1::int FOR UPDATE SKIP LOCKED))
    RETURNING part, lane, state, n),
s AS (
    INSERT INTO $schema$.history_tally AS t (part, lane, state, n)
    SELECT d.part, d.lane, d.state, sum(d.n) FROM d GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (part, lane, state) DO UPDATE SET n = t.n + excluded.n)
SELECT count(*) FROM d
