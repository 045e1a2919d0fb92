-- Whether a look would find something: a kind whose turn it is and which has one that is due, one that was taken and not
-- begun, or one to be forgotten.
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t)
SELECT EXISTS (
    SELECT FROM n, $schema$.deletion_pace p, LATERAL (
        SELECT d.id FROM $schema$.deletion d WHERE d.tenant = p.tenant AND d.kind = p.kind AND d.due_at <= n.t AND d.state < 2 AND d.state = 0
        ORDER BY d.due_at, d.id LIMIT 1) x
    WHERE p.next_at <= n.t)
    OR EXISTS (SELECT FROM n, $schema$.deletion d WHERE d.state = 1 AND d.due_at <= n.t)
    OR EXISTS (SELECT FROM n, $schema$.deletion d WHERE d.state = 2 AND d.due_at <= n.t)
