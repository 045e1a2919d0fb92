-- The row is locked. $1 task, $2 claim_no, $3 checkpoint or null, $4 key, $5 action, $6 before, $7 after, $8 error; each key once
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
o AS MATERIALIZED (SELECT count(*) AS known, count(i.error) AS errors FROM $schema$.item i WHERE i.task = $1::bigint AND i.key = ANY ($4::text[])),
w AS (
    INSERT INTO $schema$.item(task, key, action, before, after, error, claim_no, at)
    SELECT $1::bigint, u.key, u.action, u.before, u.after, u.error, $2::int, n.t
    FROM n, unnest($4::text[], $5::text[], $6::text[], $7::text[], $8::text[]) u(key, action, before, after, error)
    ON CONFLICT (task, key) DO UPDATE SET action = excluded.action, before = excluded.before, after = excluded.after,
        error = excluded.error, claim_no = excluded.claim_no, at = excluded.at
    RETURNING error)
UPDATE $schema$.task_result r SET
    total = r.total - o.known + (SELECT count(*) FROM w), errors = r.errors - o.errors + (SELECT count(w.error) FROM w),
    checkpoint = coalesce($3::text, r.checkpoint),
    checkpoint_by = CASE WHEN $3::text IS NULL THEN r.checkpoint_by ELSE $2::int END,
    checkpoint_at = CASE WHEN $3::text IS NULL THEN r.checkpoint_at ELSE n.t END
FROM n, o WHERE r.task = $1::bigint RETURNING r.total, r.errors
