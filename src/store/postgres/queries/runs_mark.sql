-- Marks instants as decided. Answers with the numbers of those that were not yet: only these may become tasks. A backfill may fill in
-- for an instant that was skipped. $1 schedule, $2 instant, $3 entity, $4 cause, $5 task (NULL = skipped), $6 skipped, $7 keep_ms
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
u AS MATERIALIZED (
    SELECT u.* FROM unnest($1::bigint[], $2::timestamptz[], $3::text[], $4::smallint[], $5::bigint[], $6::text[], $7::bigint[])
        WITH ORDINALITY u(schedule, instant, entity, cause, task, skipped, keep_ms, ord)),
i AS (
    INSERT INTO $schema$.schedule_run AS r (schedule, instant, entity, cause, task, skipped, decided_at, expires_at)
    SELECT u.schedule, u.instant, u.entity, u.cause, u.task, u.skipped, n.t, n.t + u.keep_ms * interval '1 millisecond'
    FROM u, n ORDER BY u.schedule, u.instant, u.entity
    ON CONFLICT (schedule, instant, entity) DO UPDATE SET cause = excluded.cause, task = excluded.task, skipped = excluded.skipped,
        decided_at = excluded.decided_at, expires_at = excluded.expires_at
    WHERE r.task IS NULL AND excluded.cause = 2 AND excluded.task IS NOT NULL
    RETURNING r.schedule, r.instant, r.entity)
SELECT u.ord, i.schedule IS NOT NULL FROM u LEFT JOIN i ON i.schedule = u.schedule AND i.instant = u.instant AND i.entity = u.entity
ORDER BY u.ord
