-- Tasks that could be claimed out of turn, and first ones that nobody lets go.
SELECT v.id FROM $schema$.live v JOIN $schema$.ordered o ON o.task = v.id LEFT JOIN $schema$.later w ON w.task = v.id
CROSS JOIN LATERAL (SELECT o.turn IS NULL OR EXISTS (SELECT FROM $schema$.ordered f WHERE f.tenant = o.tenant AND f.key = o.key AND f.turn < o.turn) AS behind) b
WHERE (b.behind AND (w.due < 'infinity' OR EXISTS (SELECT FROM $schema$.ready r WHERE r.lane = v.lane AND r.pos = v.pos AND r.task = v.id)))
    OR (NOT b.behind AND w.due = 'infinity')
LIMIT 20
