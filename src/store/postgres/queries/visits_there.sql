-- Which of them are there, and when they are due; their schedules' rows are locked. $1 schedule, $2 entity
SELECT u.ord, v.next_at FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY u(schedule, entity, ord)
CROSS JOIN LATERAL (SELECT f.next_at FROM $schema$.visit f WHERE f.schedule = u.schedule AND f.entity = u.entity OFFSET 0) v
