-- One cheap look for a claimer that found nothing the last time: is its session live, is there anything to take now,
-- when is the next task due, does a suspect wait. $1 session, $2 queues (empty = all), $3 types, $4 suspects
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
l AS MATERIALIZED (
    SELECT l.id, l.suspect FROM $schema$.lane l JOIN $schema$.queue q ON q.id = l.queue
    WHERE l.type = ANY ($3::text[]) AND (cardinality($2::text[]) = 0 OR q.name = ANY ($2::text[])) AND NOT q.paused),
w AS MATERIALIZED (
    SELECT l.suspect, EXISTS (SELECT FROM $schema$.ready r WHERE r.lane = l.id) AS ready,
        (SELECT x.due FROM $schema$.later x WHERE x.lane = l.id ORDER BY x.due LIMIT 1) AS due FROM l)
SELECT n.t, EXISTS (SELECT FROM $schema$.session z WHERE z.id = $1::uuid AND z.state <= 1 AND z.lease_until > n.t),
    EXISTS (SELECT FROM w WHERE w.suspect = $4::boolean AND (w.ready OR w.due <= n.t)),
    (SELECT min(w.due) FROM w WHERE (NOT w.suspect OR $4::boolean) AND w.due > n.t),
    EXISTS (SELECT FROM w WHERE w.suspect AND (w.ready OR w.due <= n.t))
FROM n
