-- Who takes of a resource has locked its row, so a reference can find nothing wrong; looking it up for every slot took longer
-- than writing the slots. Whoever removes a resource removes its slots (queries/resource_remove.sql).
ALTER TABLE $schema$.slot DROP CONSTRAINT slot_resource_fkey;
