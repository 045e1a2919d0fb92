-- Who changed a queue's settings last, and when.
ALTER TABLE stint_queue ADD COLUMN changed_by TEXT;
ALTER TABLE stint_queue ADD COLUMN changed_at INTEGER;
