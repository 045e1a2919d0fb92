-- name: schedule_find
SELECT id, spec, revision, turn, paused, created_at, considered_at, next_at, queued_at, last_instant, last_task, running,
    changed_by, changed_at, name FROM stint_schedule WHERE tenant = ? AND name = ?;

-- name: schedule_load
SELECT id, spec, revision, turn, paused, created_at, considered_at, next_at, queued_at, last_instant, last_task, running,
    changed_by, changed_at, name FROM stint_schedule WHERE id = ?;

-- name: schedule_list
SELECT id, spec, revision, turn, paused, created_at, considered_at, next_at, queued_at, last_instant, last_task, running,
    changed_by, changed_at, name FROM stint_schedule WHERE (tenant, name) > (?, ?) ORDER BY tenant, name LIMIT ?;

-- name: schedule_list_tenant
SELECT id, spec, revision, turn, paused, created_at, considered_at, next_at, queued_at, last_instant, last_task, running,
    changed_by, changed_at, name FROM stint_schedule WHERE tenant = ? AND name > ? ORDER BY name LIMIT ?;

-- name: schedule_due
SELECT id, spec, revision, turn, paused, created_at, considered_at, next_at, queued_at, last_instant, last_task, running,
    changed_by, changed_at, name FROM stint_schedule
WHERE paused = 0 AND next_at IS NOT NULL AND next_at <= ? ORDER BY next_at LIMIT ?;

-- name: schedule_next
SELECT next_at FROM stint_schedule WHERE paused = 0 AND next_at IS NOT NULL AND next_at > ? ORDER BY next_at LIMIT 1;

-- name: schedule_of_visits
SELECT id FROM stint_schedule WHERE paused = 0 AND visits = 1 ORDER BY id;

-- name: schedule_insert
INSERT INTO stint_schedule (tenant, name, spec, visits, revision, turn, paused, created_at, considered_at, next_at, queued_at,
    last_instant, last_task, running, changed_by, changed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
RETURNING id;

-- name: schedule_save
UPDATE stint_schedule SET spec = ?, visits = ?, revision = ?, turn = ?, paused = ?, considered_at = ?, next_at = ?,
    queued_at = ?, last_instant = ?, last_task = ?, running = ?, changed_by = ?, changed_at = ? WHERE id = ?;

-- name: schedule_advance
UPDATE stint_schedule SET turn = ?, considered_at = ?, next_at = ?, queued_at = ?, last_instant = ?, last_task = ?,
    running = ? WHERE id = ?;

-- name: schedule_remove
DELETE FROM stint_schedule WHERE id = ?;

-- name: schedule_remove_runs
DELETE FROM stint_schedule_run WHERE schedule = ?;

-- name: schedule_remove_visits
DELETE FROM stint_visit WHERE schedule = ?;

-- name: run_find
SELECT task FROM stint_schedule_run WHERE schedule = ? AND instant = ? AND entity = ?;

-- name: run_set
INSERT INTO stint_schedule_run (schedule, instant, entity, cause, task, skipped, decided_at, expires_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (schedule, instant, entity) DO UPDATE SET cause = excluded.cause, task = excluded.task, skipped = excluded.skipped,
    decided_at = excluded.decided_at, expires_at = excluded.expires_at;

-- name: run_list
SELECT instant, entity, cause, task, skipped, decided_at FROM stint_schedule_run
WHERE schedule = ? AND instant >= ? AND (instant, entity) < (?, ?) ORDER BY instant DESC, entity DESC LIMIT ?;

-- name: run_forget
DELETE FROM stint_schedule_run WHERE (schedule, instant, entity) IN
    (SELECT schedule, instant, entity FROM stint_schedule_run WHERE expires_at <= ? ORDER BY expires_at LIMIT ?);

-- name: calendar_set
INSERT INTO stint_calendar (tenant, name, dates) VALUES (?, ?, ?)
ON CONFLICT (tenant, name) DO UPDATE SET dates = excluded.dates;

-- name: calendar_changed
-- Those that name it are looked at at once. What was due before is still to be decided; what was excluded is not made up for.
UPDATE stint_schedule SET turn = turn + 1, next_at = min(coalesce(next_at, ?1), ?1),
    considered_at = CASE WHEN next_at <= ?1 THEN considered_at ELSE max(considered_at, ?1) END
WHERE tenant = ?2 AND visits = 0 AND EXISTS (SELECT 1 FROM json_each(spec, '$.except') WHERE value = ?3);

-- name: calendar_list
SELECT tenant, name, dates FROM stint_calendar WHERE tenant = ? ORDER BY name;

-- name: calendar_remove
DELETE FROM stint_calendar WHERE tenant = ? AND name = ?;

-- name: visit_set
INSERT INTO stint_visit (schedule, entity, every_ms, next_at, last_at) VALUES (?1, ?2, ?3, ?4, NULL)
ON CONFLICT (schedule, entity) DO UPDATE SET every_ms = excluded.every_ms,
    next_at = CASE WHEN coalesce(excluded.every_ms, ?5) < coalesce(every_ms, ?5) THEN min(next_at, excluded.next_at)
        ELSE next_at END;

-- name: visits_shorten
UPDATE stint_visit SET next_at = ?2 + CAST((next_at - ?2) * 1.0 * ?3 / ?4 AS INTEGER)
WHERE schedule = ?1 AND every_ms IS NULL AND next_at > ?2;

-- name: visits_resume
-- After a pause: those that passed move to their next instant, each in its place.
UPDATE stint_visit SET next_at = next_at + ((?2 - next_at) / (coalesce(every_ms, ?3) * 1000) + 1) * (coalesce(every_ms, ?3) * 1000)
WHERE schedule = ?1 AND next_at <= ?2;

-- name: visit_remove
DELETE FROM stint_visit WHERE schedule = ? AND entity = ?;

-- name: visit_list
SELECT schedule, entity, every_ms, next_at, last_at FROM stint_visit WHERE schedule = ? AND entity > ? ORDER BY entity LIMIT ?;

-- name: visit_due
SELECT schedule, entity, every_ms, next_at, last_at FROM stint_visit
WHERE schedule = ? AND next_at <= ? ORDER BY next_at LIMIT ?;

-- name: visit_next
SELECT next_at FROM stint_visit WHERE schedule = ? AND next_at > ? ORDER BY next_at LIMIT 1;

-- name: visit_advance
UPDATE stint_visit SET next_at = ?, last_at = coalesce(?, last_at) WHERE schedule = ? AND entity = ?;

-- name: visit_there
SELECT next_at FROM stint_visit WHERE schedule = ? AND entity = ?;
