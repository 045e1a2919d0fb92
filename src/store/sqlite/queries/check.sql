-- name: check_held
SELECT id FROM stint_task WHERE state = 1 AND (session IS NULL OR token IS NULL)
UNION ALL
SELECT id FROM stint_task WHERE state <> 1 AND session IS NOT NULL
UNION ALL
SELECT id FROM stint_task t WHERE session IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM stint_session s WHERE s.no = t.session)
LIMIT 10;

-- name: check_policies
SELECT min(id), retry FROM stint_task WHERE retry IS NOT NULL AND retry <> '' GROUP BY retry;

-- name: check_waiting
SELECT id FROM stint_task WHERE (state IN (0, 5)) <> (wait <> 0) LIMIT 10;

-- name: check_unique
SELECT u.task FROM stint_unique u
WHERE NOT EXISTS (SELECT 1 FROM stint_task t WHERE t.id = u.task AND t.unique_key = u.key)
UNION ALL
SELECT t.id FROM stint_task t
WHERE t.unique_key IS NOT NULL AND NOT EXISTS (SELECT 1 FROM stint_unique u WHERE u.task = t.id)
LIMIT 10;

-- name: check_tally
WITH counted (lane, state, n) AS (SELECT lane, state, count(*) FROM stint_task GROUP BY lane, state),
     kept (lane, state, n) AS (SELECT lane, state, n FROM stint_tally WHERE period = 0 AND n <> 0)
SELECT lane FROM (SELECT * FROM counted EXCEPT SELECT * FROM kept)
UNION ALL
SELECT lane FROM (SELECT * FROM kept EXCEPT SELECT * FROM counted)
LIMIT 10;

-- name: check_tally_history
WITH counted (lane, state, n) AS (SELECT lane, state, count(*) FROM stint_history_{p} GROUP BY lane, state),
     kept (lane, state, n) AS (SELECT lane, state, n FROM stint_tally WHERE period = {p} AND n <> 0)
SELECT lane FROM (SELECT * FROM counted EXCEPT SELECT * FROM kept)
UNION ALL
SELECT lane FROM (SELECT * FROM kept EXCEPT SELECT * FROM counted)
LIMIT 10;

-- name: check_live_states
SELECT id, state FROM stint_task ORDER BY id;

-- name: check_history_states
SELECT id, state FROM stint_history_{p} ORDER BY id;

-- name: check_both
SELECT t.id FROM stint_task t JOIN stint_history_{p} h ON h.id = t.id LIMIT 10;
