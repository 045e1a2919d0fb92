-- name: resource_list
SELECT name, pattern, settings, state FROM stint_resource;

-- name: resource_set
INSERT INTO stint_resource (name, pattern, capacity, settings, state) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET pattern = excluded.pattern, capacity = excluded.capacity, settings = excluded.settings, state = excluded.state;

-- name: resource_remove
DELETE FROM stint_resource WHERE name = ?;

-- name: lane_need_add
INSERT INTO stint_lane_need (lane, resource, units) VALUES (?, ?, ?);

-- name: slot_list
SELECT task, resource, units FROM stint_slot;

-- name: slot_add
INSERT INTO stint_slot (task, resource, units) VALUES (?, ?, ?)
ON CONFLICT (task, resource) DO UPDATE SET units = excluded.units;

-- name: slot_release
DELETE FROM stint_slot WHERE task = ?;

-- name: slot_inherit
UPDATE stint_slot SET task = ? WHERE task = ?;

-- name: slot_forget
DELETE FROM stint_slot WHERE resource = ?;

-- name: seat_list
SELECT id, seat_group FROM stint_task WHERE session IS NOT NULL AND seat_group IS NOT NULL;

-- name: running_lanes
SELECT id, lane FROM stint_task WHERE session IS NOT NULL;

-- name: order_list
SELECT queue, settings FROM stint_queue_order;

-- name: order_set
INSERT INTO stint_queue_order (queue, settings) VALUES (?, ?) ON CONFLICT (queue) DO UPDATE SET settings = excluded.settings;

-- name: order_remove
DELETE FROM stint_queue_order WHERE queue = ?;

-- name: share_list
SELECT queue, leads FROM stint_share;

-- name: share_set
INSERT INTO stint_share (queue, leads) VALUES (?, ?) ON CONFLICT (queue) DO UPDATE SET leads = excluded.leads;

-- name: ready_urgency
SELECT urgency FROM stint_task WHERE wait = 1 AND lane = ? AND urgency > ? ORDER BY urgency LIMIT 1;

-- name: suspect_urgency
SELECT urgency FROM stint_task WHERE wait = 3 AND lane = ? AND urgency > ? ORDER BY urgency LIMIT 1;

-- name: ready_line
SELECT id, urgency, position, state, due_at, start_by, flags, created_at FROM stint_task
WHERE wait = 1 AND lane = ? AND urgency = ? AND position > ? ORDER BY position LIMIT ?;

-- name: suspect_line
SELECT id, urgency, position, state, due_at, start_by, flags, created_at FROM stint_task
WHERE wait = 3 AND lane = ? AND urgency = ? AND position > ? ORDER BY position LIMIT ?;

-- name: ready_between
SELECT count(*) FROM stint_task WHERE wait = 1 AND lane = ? AND urgency = ? AND position > ? AND position < ?;

-- name: ordered_add
INSERT INTO stint_ordered (task, tenant, key, turn, on_failed) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (task) DO UPDATE SET tenant = excluded.tenant, key = excluded.key, turn = excluded.turn,
    on_failed = excluded.on_failed, over_at = NULL;

-- name: ordered_get
SELECT tenant, key, turn, on_failed FROM stint_ordered WHERE task = ?;

-- name: ordered_first
SELECT task FROM stint_ordered WHERE tenant = ? AND key = ? AND turn IS NOT NULL ORDER BY turn LIMIT 1;

-- name: ordered_before
-- The one that a task comes after.
SELECT f.task, f.key FROM stint_ordered o JOIN stint_ordered f ON f.tenant = o.tenant AND f.key = o.key AND f.turn < o.turn
WHERE o.task = ? ORDER BY f.turn DESC LIMIT 1;

-- name: ordered_behind
SELECT task FROM stint_ordered WHERE tenant = ? AND key = ? AND turn > ? ORDER BY turn;

-- name: ordered_over
UPDATE stint_ordered SET turn = NULL, over_at = ?2 WHERE task = ?1;

-- name: ordered_remove
DELETE FROM stint_ordered WHERE task = ?;

-- name: ordered_forget
DELETE FROM stint_ordered WHERE task IN (SELECT task FROM stint_ordered WHERE over_at IS NOT NULL AND over_at <= ? LIMIT ?);

-- name: ordered_dropped
-- Those that keep their turn though they are over, of a period that goes.
SELECT o.task, o.tenant, o.key FROM stint_ordered o JOIN stint_history_{p} h ON h.id = o.task WHERE o.turn IS NOT NULL;

-- name: lane_unused
-- Of no task, live or kept. One of each queue stays: by it the queue is known.
SELECT id FROM stint_lane WHERE type <> '' AND id NOT IN (SELECT lane FROM stint_tally WHERE n <> 0)
    AND id NOT IN (SELECT min(id) FROM stint_lane GROUP BY queue) LIMIT ?;

-- name: lane_need_remove
DELETE FROM stint_lane_need WHERE lane = ?;

-- name: lane_tally_remove
DELETE FROM stint_tally WHERE period = 0 AND lane = ?;

-- name: lane_free
-- No claim looks at it any more. Its row stays, empty: to remove it, all tasks would be looked at for its number.
UPDATE stint_lane SET tenant = 0, queue = '', type = '', placement = id WHERE id = ?;

-- name: task_wait
SELECT wait FROM stint_task WHERE id = ?;

-- name: check_slots
SELECT s.task FROM stint_slot s WHERE NOT EXISTS (SELECT 1 FROM stint_task t WHERE t.id = s.task AND t.state = 1)
UNION ALL
SELECT s.task FROM stint_slot s WHERE NOT EXISTS (SELECT 1 FROM stint_resource r WHERE r.name = s.resource)
LIMIT 10;

-- name: check_slots_derived
-- Of a need that a running task's line names, and that is known, less is held than asked for.
SELECT s.task FROM stint_slot s JOIN stint_task t ON t.id = s.task JOIN stint_lane l ON l.id = t.lane
WHERE s.resource NOT LIKE 'queue:%' AND s.resource NOT LIKE 'type:%'
    AND s.units IS NOT (SELECT n.units FROM stint_lane_need n WHERE n.lane = l.id AND n.resource = s.resource)
LIMIT 10;

-- name: check_slots_missing
-- Running tasks that need something which has a capacity, and for which neither they nor others of their group count.
SELECT t.id FROM stint_task t JOIN stint_lane_need n ON n.lane = t.lane
JOIN stint_resource r ON r.name = n.resource AND r.capacity IS NOT NULL
WHERE t.session IS NOT NULL AND NOT EXISTS (SELECT 1 FROM stint_slot s WHERE s.task = t.id AND s.resource = r.name)
    AND (t.seat_group IS NULL OR NOT EXISTS (
        SELECT 1 FROM stint_slot s JOIN stint_task g ON g.id = s.task
        WHERE s.resource = r.name AND g.session = t.session AND g.seat_group = t.seat_group))
LIMIT 10;

-- name: check_capacity
-- More may be held only as far as it was when the capacity was set.
SELECT r.name || ': capacity ' || r.capacity || ', ' || sum(s.units) || ' held'
FROM stint_resource r JOIN stint_slot s ON s.resource = r.name WHERE r.capacity IS NOT NULL GROUP BY r.name
HAVING sum(s.units) > max(r.capacity, coalesce(json_extract(nullif(r.state, ''), '$.over'), 0))
LIMIT 10;

-- name: check_flows
SELECT 'flow ' || f.task || ' counts ' || f.steps || ' steps, ' || f.bytes || ' bytes, ' || f.waiting || ' signals that wait'
FROM stint_flow f
WHERE f.steps <> (SELECT coalesce(max(s.no), 0) FROM stint_flow_step s WHERE s.task = f.task)
    OR f.bytes <> (SELECT coalesce(sum(length(CAST(s.result AS BLOB))), 0) FROM stint_flow_step s WHERE s.task = f.task)
    OR f.waiting <> (SELECT count(*) FROM stint_flow_signal g WHERE g.task = f.task AND g.step IS NULL)
LIMIT 10;

-- name: check_ordered
SELECT o.task FROM stint_ordered o JOIN stint_task t ON t.id = o.task WHERE o.turn IS NULL
UNION ALL
SELECT t.id FROM stint_task t JOIN stint_ordered o ON o.task = t.id
WHERE t.wait IN (1, 2, 3, 5) AND o.turn > (SELECT min(f.turn) FROM stint_ordered f WHERE f.tenant = o.tenant AND f.key = o.key AND f.turn IS NOT NULL)
UNION ALL
SELECT t.id FROM stint_task t WHERE t.wait = 6 AND NOT EXISTS (
    SELECT 1 FROM stint_ordered o JOIN stint_ordered f ON f.tenant = o.tenant AND f.key = o.key AND f.turn < o.turn
    WHERE o.task = t.id)
LIMIT 10;
