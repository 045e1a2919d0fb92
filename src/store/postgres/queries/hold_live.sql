-- Which of the tasks are not finished. They cannot end before this transaction does, and whoever ends them then looks for
-- who waits for them. $1 ids, sorted
WITH l AS MATERIALIZED (
    SELECT v.id, v.flags, v.lane FROM $schema$.live v WHERE v.id = ANY ($1::bigint[]) ORDER BY v.id FOR KEY SHARE),
u AS (
    UPDATE $schema$.live z SET flags = (z.flags | 128)::smallint
    WHERE z.id = ANY (ARRAY(SELECT id FROM l WHERE (flags & 128) = 0)))
SELECT l.id, k.tenant FROM l JOIN $schema$.lane k ON k.id = l.lane
