-- How many names there are that nobody has set, as far as $1.
SELECT count(*) FROM (SELECT FROM $schema$.resource r WHERE r.name NOT LIKE '%*' AND r.settings NOT LIKE '%"changed_at"%' LIMIT $1::int) x
