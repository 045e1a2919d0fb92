-- What is over: keys and turns of order keys; of each $1 at most, and how many of each.
-- $1 limit, $2 so long turns are kept, in milliseconds
WITH n AS MATERIALIZED (SELECT $schema$.now_() AS t),
i AS (DELETE FROM $schema$.idem_key WHERE ctid = ANY (ARRAY(
    SELECT k.ctid FROM $schema$.idem_key k WHERE k.expires_at <= (SELECT t FROM n) ORDER BY k.expires_at LIMIT $1::int FOR UPDATE SKIP LOCKED)) RETURNING 1),
h AS (DELETE FROM $schema$.throttle_key WHERE ctid = ANY (ARRAY(
    SELECT k.ctid FROM $schema$.throttle_key k WHERE k.until <= (SELECT t FROM n) ORDER BY k.until LIMIT $1::int FOR UPDATE SKIP LOCKED)) RETURNING 1),
o AS (DELETE FROM $schema$.ordered WHERE task = ANY (ARRAY(
    SELECT o.task FROM $schema$.ordered o WHERE o.over_at <= (SELECT t FROM n) - $2::bigint * interval '1 millisecond'
    LIMIT $1::int FOR UPDATE SKIP LOCKED)) RETURNING 1)
SELECT (SELECT count(*) FROM i) + (SELECT count(*) FROM h), (SELECT count(*) FROM o)
