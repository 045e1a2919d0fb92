-- $1 names, sorted; $2 patterns, $3 settings, $4 matches
INSERT INTO $schema$.resource(name, pattern, settings, matches)
SELECT u.name, u.pattern, u.settings, u.matches FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) u(name, pattern, settings, matches)
ON CONFLICT (name) DO NOTHING
