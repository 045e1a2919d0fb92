SELECT q.name, l.type, l.tenant, l.priority, l.suspect, l.placement FROM $schema$.lane l JOIN $schema$.queue q ON q.id = l.queue WHERE l.id = $1::int
