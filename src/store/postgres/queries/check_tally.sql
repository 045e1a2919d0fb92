-- Where the count of a history table is not the number of its rows. $1 part
SELECT coalesce(t.lane, h.lane), coalesce(t.state, h.state), coalesce(t.n, 0)::bigint, coalesce(h.n, 0)
FROM (SELECT x.lane, x.state, sum(x.n) AS n FROM (
          SELECT s.lane, s.state, s.n FROM $schema$.history_tally s WHERE s.part = $1::int
          UNION ALL SELECT c.lane, c.state, c.n FROM $schema$.history_change c WHERE c.part = $1::int) x GROUP BY 1, 2) t
FULL JOIN (SELECT y.lane, y.state, count(*) AS n FROM $schema$.history y WHERE y.part = $1::int GROUP BY 1, 2) h
    ON h.lane = t.lane AND h.state = t.state
WHERE coalesce(t.n, 0) <> coalesce(h.n, 0) LIMIT 1
