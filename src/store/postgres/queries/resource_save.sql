-- $1 names, $2 patterns, $3 settings, $4 states
UPDATE $schema$.resource r SET pattern = u.pattern, settings = u.settings, state = u.state
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) u(name, pattern, settings, state) WHERE r.name = u.name
