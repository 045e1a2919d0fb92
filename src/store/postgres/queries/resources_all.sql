-- $1 whether the holders are to be told
SELECT r.id, r.name, r.pattern, r.settings, r.state,
    coalesce((SELECT sum(s.units) FROM $schema$.slot s WHERE s.resource = r.id), 0)::bigint,
    CASE WHEN $1::boolean THEN ARRAY(SELECT s.task FROM $schema$.slot s WHERE s.resource = r.id ORDER BY s.task LIMIT 100) END,
    CASE WHEN r.state LIKE '%"trial"%' THEN EXISTS (
        SELECT FROM $schema$.slot s WHERE s.task = (r.state::jsonb ->> 'trial')::bigint AND s.resource = r.id) ELSE false END,
    $schema$.now_()
FROM $schema$.resource r ORDER BY r.name COLLATE "C"
