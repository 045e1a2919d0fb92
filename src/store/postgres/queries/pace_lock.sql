-- The kinds whose turn it is and that nobody else serves now.
SELECT p.tenant, p.kind, p.cap FROM $schema$.deletion_pace p WHERE p.next_at <= $schema$.now_()
ORDER BY p.tenant, p.kind FOR UPDATE SKIP LOCKED
