-- Of some tasks one that comes after a task in the order of its key. $1 the task, $2 those
SELECT o.task, o.key FROM (SELECT $1::bigint AS task) w JOIN $row ordered f w.task$
CROSS JOIN unnest($2::bigint[]) u(task) JOIN $row ordered o u.task$
WHERE o.tenant = f.tenant AND o.key = f.key AND o.turn > f.turn LIMIT 1
