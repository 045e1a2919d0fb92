SELECT retry FROM $schema$.policy WHERE id = $1::int
