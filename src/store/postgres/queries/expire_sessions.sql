-- First statement of a reclaim. FOR UPDATE waits for claims in flight under the session; what they took is seen by the
-- statements after this one. A session that another sweeper has is left to it.
WITH s AS MATERIALIZED (
    SELECT id FROM $schema$.session WHERE state <= 1 AND lease_until <= (SELECT $schema$.now_()) ORDER BY id FOR UPDATE SKIP LOCKED)
UPDATE $schema$.session z SET state = 3 FROM s WHERE z.id = s.id RETURNING z.id
