SELECT id, hostname, last_seen FROM $schema$.node_label ORDER BY hostname COLLATE "C"
