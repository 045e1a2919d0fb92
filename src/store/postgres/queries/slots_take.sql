-- $1 tasks, $2 resources, $3 units
INSERT INTO $schema$.slot(task, resource, units) SELECT u.task, u.resource, u.units FROM unnest($1::bigint[], $2::int[], $3::int[]) u(task, resource, units)
