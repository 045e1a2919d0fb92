-- Waits as they begin; a later one of the same task takes the place of the one before.
-- $1 task, $2 pending, $3 failed, $4 total, $5 on_failure, $6 any_success, $7 need_success, $8 started, $9 open
WITH x AS MATERIALIZED (
    SELECT u.* FROM unnest($1::bigint[], $2::int[], $3::int[], $4::int[], $5::smallint[], $6::boolean[], $7::boolean[], $8::boolean[], $9::boolean[])
        u(task, pending, failed, total, on_failure, any_success, need_success, started, open)),
f AS (UPDATE $schema$.live z SET flags = (z.flags | 1024)::smallint WHERE z.id = ANY ($1::bigint[]) AND (z.flags & 1024) = 0)
INSERT INTO $schema$.wait(task, pending, failed, total, on_failure, any_success, need_success, started, open)
SELECT task, pending, failed, total, on_failure, any_success, need_success, started, open FROM x
ON CONFLICT (task) DO UPDATE SET pending = excluded.pending, failed = excluded.failed, total = excluded.total, on_failure = excluded.on_failure,
    any_success = excluded.any_success, need_success = excluded.need_success, started = excluded.started, open = excluded.open
