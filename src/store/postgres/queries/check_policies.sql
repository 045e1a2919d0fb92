SELECT id, retry FROM $schema$.policy ORDER BY id
