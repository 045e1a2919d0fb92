SELECT l.part FROM $schema$.leaf l WHERE l.parent = 'history' ORDER BY l.part
