SELECT queue, leads FROM $schema$.queue_share
