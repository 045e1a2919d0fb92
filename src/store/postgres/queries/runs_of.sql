-- The tasks of instants that were decided. $1 schedule, $2 instant, $3 entity
SELECT u.ord, r.task FROM unnest($1::bigint[], $2::timestamptz[], $3::text[]) WITH ORDINALITY u(schedule, instant, entity, ord)
CROSS JOIN LATERAL (
    SELECT f.task FROM $schema$.schedule_run f WHERE f.schedule = u.schedule AND f.instant = u.instant AND f.entity = u.entity OFFSET 0) r
