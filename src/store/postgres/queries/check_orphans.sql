-- Unique keys that stand for no live task; leases without a session.
SELECT 'key ' || k.key || ' stands for task ' || k.task FROM $schema$.live_key k
WHERE k.kind = 0 AND NOT EXISTS (SELECT FROM $schema$.live v WHERE v.id = k.task AND v.unique_key = k.key)
UNION ALL
SELECT 'a lease of ' || cardinality(e.ids) || ' tasks names no session' FROM $schema$.lease e
WHERE NOT EXISTS (SELECT FROM $schema$.session s WHERE s.id = e.session)
LIMIT 20
