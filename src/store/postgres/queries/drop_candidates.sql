-- Period tables, history first, the oldest first, with how long their rows are kept.
SELECT f.name, f.parent, f.part, coalesce(r.keep_ms, (SELECT max(keep_ms) FROM $schema$.retention)) FROM $schema$.leaf f
LEFT JOIN $schema$.retention r ON f.parent = 'history' AND r.class = f.part % 16
ORDER BY f.parent <> 'history', f.parent, f.part
