-- Lines in which something waits that needs something.
SELECT q.name, l.type, l.placement FROM $schema$.lane l JOIN $schema$.queue q ON q.id = l.queue
WHERE EXISTS (SELECT FROM $schema$.ready r WHERE r.lane = l.id OFFSET 0) OR EXISTS (SELECT FROM $schema$.later w WHERE w.lane = l.id OFFSET 0)
