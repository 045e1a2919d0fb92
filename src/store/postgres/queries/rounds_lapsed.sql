-- $1 limit
SELECT r.tenant, r.workflow, r.name, r.key FROM $schema$.join_round r
WHERE r.state = 0 AND r.expires_at <= (SELECT $schema$.now_()) ORDER BY r.expires_at LIMIT $1::int
