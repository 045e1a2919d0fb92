SELECT name, queue, priority, retry, timeout_ms, isolated, revision, updated_at, placement FROM $schema$.task_type ORDER BY name COLLATE "C"
