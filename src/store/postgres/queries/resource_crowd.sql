-- How many names of patterns there are, as far as $1.
SELECT count(*) FROM (SELECT FROM $schema$.resource r WHERE r.pattern <> '' LIMIT $1::int) x
