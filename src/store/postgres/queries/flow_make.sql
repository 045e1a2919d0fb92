-- $1 task, $2 tenant, $3 ms until it is looked at
INSERT INTO $schema$.flow(task, tenant, steps, bytes, signals, waiting, awaits, came, started_at, look_at)
SELECT $1::bigint, $2::bigint, 0, 0, 0, 0, NULL, false, n.t, n.t + $3::bigint * interval '1 millisecond'
FROM (SELECT $schema$.now_() AS t OFFSET 0) n
ON CONFLICT (task) DO NOTHING
