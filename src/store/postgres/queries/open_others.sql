-- The caller has proven to be alone: every other session is over.
UPDATE $schema$.session SET lease_until = least(lease_until, $schema$.now_()) WHERE state <= 1 AND id <> $1::uuid
