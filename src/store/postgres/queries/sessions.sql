SELECT s.id, s.node, k.hostname, s.pid, CASE WHEN s.state <= 1 AND s.lease_until <= n.t THEN 3 ELSE s.state END::smallint, s.worker_state, s.slots,
    s.running, s.queues, s.types, s.version, s.started_at, s.renewed_at, s.lease_until, s.labels
FROM (SELECT $schema$.now_() AS t OFFSET 0) n CROSS JOIN $schema$.session s JOIN $schema$.node_label k ON k.id = s.node ORDER BY s.id
