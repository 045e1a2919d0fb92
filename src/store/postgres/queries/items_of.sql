-- $1 task, $2 after this key, $3 errors only, $4 limit
SELECT i.key, i.action, i.before, i.after, i.error, i.claim_no, i.at FROM $schema$.item i
WHERE i.task = $1::bigint AND i.key > $2::text AND (NOT $3::boolean OR i.error IS NOT NULL) ORDER BY i.key LIMIT $4::int
