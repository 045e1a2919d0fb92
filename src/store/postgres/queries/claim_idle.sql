-- One cheap look for a claimer that found nothing the last time: is its session live, is there anything to take now,
-- when is the next task due, does a suspect wait. $1 session, $2 queues (empty = all), $3 types, $4 suspects, $5/$6 lanes and
-- the positions below which they were found empty (not for suspects, of which there are few)
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
h AS MATERIALIZED (
    SELECT l.id, l.suspect, CASE WHEN l.suspect THEN 0 ELSE coalesce(u.mark, 0) END AS mark FROM $schema$.lane l JOIN $schema$.queue q ON q.id = l.queue
    LEFT JOIN unnest($5::int[], $6::bigint[]) u(lane, mark) ON u.lane = l.id WHERE $passes lane$),
w AS MATERIALIZED (
    SELECT h.suspect, EXISTS (SELECT FROM $schema$.ready r WHERE r.lane = h.id AND r.pos > h.mark OFFSET 0) AS ready,
        (SELECT x.due FROM $schema$.later x WHERE x.lane = h.id ORDER BY x.due LIMIT 1) AS due FROM h)
SELECT n.t, EXISTS (SELECT FROM $schema$.session z WHERE z.id = $1::uuid AND $passes session$),
    EXISTS (SELECT FROM w r WHERE r.suspect = $4::boolean AND (r.ready OR $passes due$)),
    (SELECT nullif(min(r.due), 'infinity') FROM (SELECT l.due FROM w l WHERE $passes alone$) r WHERE NOT $passes due$),
    EXISTS (SELECT FROM w r WHERE r.suspect AND (r.ready OR $passes due$)),
    -- By the way, what the other services of a node would ask: whether there is nothing for them until $7 ms from now. 0: not asked.
    CASE WHEN $7::bigint > 0 THEN NOT EXISTS (SELECT FROM $schema$.schedule f WHERE NOT f.paused AND f.next_at <= a.t)
        AND NOT EXISTS (SELECT FROM $schema$.schedule f JOIN $schema$.visit x ON x.schedule = f.id
                        WHERE NOT f.paused AND f.visits AND f.id > 0 AND x.next_at <= a.t) END,
    CASE WHEN $7::bigint > 0 THEN NOT EXISTS (SELECT FROM $schema$.published e WHERE e.state = 0 AND e.due_at <= a.t) END,
    CASE WHEN $7::bigint > 0 THEN NOT EXISTS (SELECT FROM $schema$.session z WHERE z.state <= 1 AND z.lease_until <= a.t)
        AND NOT EXISTS (SELECT FROM $schema$.session z WHERE z.state >= 2 AND EXISTS (SELECT FROM $schema$.lease e WHERE e.session = z.id OFFSET 0))
        AND NOT EXISTS (SELECT FROM $schema$.lease e WHERE e.deadline <= a.t)
        AND NOT EXISTS (SELECT FROM $schema$.outside o WHERE o.expires_at <= a.t)
        AND NOT EXISTS (SELECT FROM $schema$.cancel_due) END,
    CASE WHEN $7::bigint > 0 THEN NOT EXISTS (
            SELECT FROM $schema$.deletion_pace p, LATERAL (
                SELECT d.id FROM $schema$.deletion d WHERE d.tenant = p.tenant AND d.kind = p.kind AND d.due_at <= a.t AND d.state < 2 AND d.state = 0
                ORDER BY d.due_at, d.id LIMIT 1) x
            WHERE p.next_at <= a.t)
        AND NOT EXISTS (SELECT FROM $schema$.deletion d WHERE d.state = 1 AND d.due_at <= a.t)
        AND NOT EXISTS (SELECT FROM $schema$.deletion d WHERE d.state = 2 AND d.due_at <= a.t) END,
    CASE WHEN $7::bigint > 0 THEN NOT EXISTS (SELECT FROM $schema$.live f WHERE f.start_by <= a.t) END
FROM n CROSS JOIN LATERAL (SELECT n.t + $7::bigint * interval '1 millisecond' AS t) a
