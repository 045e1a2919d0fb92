-- One cheap look for a claimer that found nothing the last time: is its session live, is there anything to take now,
-- when is the next task due, does a suspect wait. $1 session, $2 queues (empty = all), $3 types, $4 suspects
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
h AS MATERIALIZED (
    SELECT l.id, l.suspect FROM $schema$.lane l JOIN $schema$.queue q ON q.id = l.queue WHERE $passes lane$),
w AS MATERIALIZED (
    SELECT h.suspect, EXISTS (SELECT FROM $schema$.ready r WHERE r.lane = h.id OFFSET 0) AS ready,
        (SELECT x.due FROM $schema$.later x WHERE x.lane = h.id ORDER BY x.due LIMIT 1) AS due FROM h)
SELECT n.t, EXISTS (SELECT FROM $schema$.session z WHERE z.id = $1::uuid AND $passes session$),
    EXISTS (SELECT FROM w r WHERE r.suspect = $4::boolean AND (r.ready OR $passes due$)),
    (SELECT min(r.due) FROM (SELECT l.due FROM w l WHERE $passes alone$) r WHERE NOT $passes due$),
    EXISTS (SELECT FROM w r WHERE r.suspect AND (r.ready OR $passes due$))
FROM n
