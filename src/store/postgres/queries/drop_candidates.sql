-- Period tables that may have nothing to keep any more, history first, the oldest first, with how long their rows are kept.
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
f AS MATERIALIZED (
    SELECT l.name, l.parent, l.part, coalesce(r.keep_ms, (SELECT max(keep_ms) FROM $schema$.retention)) AS keep_ms FROM $schema$.leaf l
    LEFT JOIN $schema$.retention r ON l.parent = 'history' AND r.class = l.part % 16)
SELECT f.name, f.parent, f.part, f.keep_ms
FROM n CROSS JOIN f LEFT JOIN $schema$.period p ON p.no = CASE f.parent WHEN 'history' THEN f.part / 16 WHEN 'attempt' THEN f.part END
WHERE CASE f.parent WHEN 'audit' THEN to_timestamp(f.part * 86400.0) ELSE coalesce(p.started_at, '-infinity') END
    < n.t - f.keep_ms * interval '1 millisecond'
ORDER BY f.parent <> 'history', f.parent, f.part
