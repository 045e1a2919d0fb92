-- Of these, by their places in the question, what is held with that token, and whether it is to stop. $1 distinct keys, $2 task, $3 key, $4 secret
SELECT x.place, (h.flags & 4) <> 0
FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) WITH ORDINALITY x(task, key, secret, place)
JOIN (SELECT e.key, u.task, u.secret, u.flags FROM $schema$.lease e CROSS JOIN LATERAL unnest(e.ids, e.secrets, e.flags) u(task, secret, flags)
      WHERE e.key = ANY ($1::bigint[])) h ON h.task = x.task AND h.key = x.key AND h.secret = x.secret
