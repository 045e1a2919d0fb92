WITH s AS (SELECT id FROM $schema$.session WHERE id = $1::uuid AND state <= 1 FOR UPDATE)
UPDATE $schema$.session z SET state = 2, lease_until = $schema$.now_() FROM s WHERE z.id = s.id
