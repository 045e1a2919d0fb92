-- What waits for a claimer: lane by lane the first of each line. $1 session or NULL, $2 queues (empty = all), $3 types, $4 suspects,
-- $5 how many of a line, $6 whether all their ages are asked for, not only that of the first, $7/$8 lanes and the positions below which
-- they were found empty. No lane: nothing waits; no row at all: the session is over.
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
s AS MATERIALIZED (
    SELECT z.id FROM $schema$.session z WHERE z.id = $1::uuid AND $passes session$ FOR KEY SHARE),
m AS MATERIALIZED (
    SELECT k.id, max(k.queue) AS queue, max(k.type) AS type, max(k.tenant) AS tenant, max(k.priority) AS priority, bool_or(k.suspect) AS suspect,
        max(k.placement) AS placement, max(k.mark) AS mark
    FROM (
        SELECT l.id, q.name AS queue, l.type, l.tenant, l.priority, l.suspect, l.placement, 0::bigint AS mark
        FROM $schema$.lane l JOIN $schema$.queue q ON q.id = l.queue
        WHERE $passes lane$ AND $passes alone$ AND (l.suspect OR NOT $4::boolean)
        UNION ALL SELECT u.lane, NULL, NULL, NULL, NULL, NULL, NULL, u.mark FROM unnest($7::int[], $8::bigint[]) u(lane, mark)) k
    GROUP BY k.id HAVING max(k.queue) IS NOT NULL),
f AS MATERIALIZED (
    SELECT m.*, h.positions, h.tasks FROM m CROSS JOIN LATERAL (
        SELECT array_agg(x.pos ORDER BY x.pos) AS positions, array_agg(x.task ORDER BY x.pos) AS tasks FROM (
            SELECT r.pos, r.task FROM (
                SELECT r.pos, r.task, r.flags FROM $schema$.ready r WHERE r.lane = m.id AND r.pos > m.mark ORDER BY r.pos LIMIT $5::int + 500) r
            WHERE $passes task$
            ORDER BY r.pos LIMIT $5::int) x) h
    WHERE h.positions IS NOT NULL)
SELECT n.t, f.id, f.queue, f.type, f.tenant, f.priority, f.suspect, f.placement, f.positions, f.tasks,
    ARRAY(
        SELECT (extract(epoch FROM greatest(v.created_at, v.due_at)) * 1000000)::bigint
        FROM unnest(CASE WHEN $6::boolean THEN f.tasks ELSE f.tasks[1:1] END) WITH ORDINALITY u(task, ord) JOIN $row live v u.task$ ORDER BY u.ord)
FROM n LEFT JOIN f ON true WHERE $1::uuid IS NULL OR EXISTS (SELECT FROM s)
