SELECT queue, settings FROM $schema$.queue_order ORDER BY queue COLLATE "C"
