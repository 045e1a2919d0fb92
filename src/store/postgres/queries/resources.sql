-- Those of some names, and all patterns; with what is held of each, whether the one that tries it still holds it, and when this
-- was read. $1 names, $2 whether the holders are to be told
SELECT r.id, r.name, r.pattern, r.settings, r.state,
    coalesce((SELECT sum(s.units) FROM $schema$.slot s WHERE s.resource = r.id), 0)::bigint,
    CASE WHEN $2::boolean THEN ARRAY(SELECT s.task FROM $schema$.slot s WHERE s.resource = r.id ORDER BY s.task LIMIT 100) END,
    CASE WHEN r.state LIKE '%"trial"%' THEN EXISTS (
        SELECT FROM $schema$.slot s WHERE s.task = (r.state::jsonb ->> 'trial')::bigint AND s.resource = r.id) ELSE false END,
    $schema$.now_()
FROM (
    SELECT n.* FROM $schema$.resource n WHERE n.name = ANY ($1::text[]) AND n.name NOT LIKE '%*'
    UNION ALL SELECT p.* FROM $schema$.resource p WHERE p.name LIKE '%*') r
ORDER BY r.name COLLATE "C"
