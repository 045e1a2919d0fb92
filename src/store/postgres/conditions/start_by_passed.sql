(r.flags & 16) <> 0 AND NOT EXISTS (SELECT FROM $schema$.live v WHERE v.id = r.task AND v.start_by > (SELECT t FROM n))
