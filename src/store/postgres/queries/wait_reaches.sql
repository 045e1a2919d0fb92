-- Whether somebody among $1, or whom they wait for, waits for $2. One such question at a time, so that two who wait for each
-- other do not both find that nobody does.
WITH RECURSIVE l AS MATERIALIZED (SELECT pg_advisory_xact_lock(hashtextextended('$schema_name$', 7006))),
r(task) AS (
    SELECT u.task FROM l CROSS JOIN unnest($1::bigint[]) u(task)
    UNION
    SELECT d.task FROM r CROSS JOIN LATERAL (
        SELECT m.task FROM $schema$.wait_member m WHERE m.waiter = r.task AND m.ended IS NULL OFFSET 0) d)
SELECT EXISTS (SELECT FROM r WHERE r.task = $2::bigint)
