-- Of what more is held than its capacity; or, where that was set below what was held, than that.
SELECT r.name, c.capacity, h.units FROM $schema$.resource r LEFT JOIN $schema$.resource p ON p.name = r.pattern
CROSS JOIN LATERAL (SELECT (coalesce(p.settings, r.settings)::jsonb ->> 'capacity')::int AS capacity) c
CROSS JOIN LATERAL (SELECT sum(s.units) AS units FROM $schema$.slot s WHERE s.resource = r.id) h
WHERE h.units > greatest(c.capacity, coalesce((nullif(r.state, '')::jsonb ->> 'over')::int, 0)) AND c.capacity IS NOT NULL
LIMIT 20
