-- $1 id, $2 spec, $3 visits, $4 revision, $5 paused, $6 considered_at, $7 next_at, $8 queued_at, $9 changed_by, $10 changed_at
UPDATE $schema$.schedule SET spec = $2::text, visits = $3::boolean, revision = $4::int, paused = $5::boolean, considered_at = $6::timestamptz,
    next_at = $7::timestamptz, queued_at = $8::timestamptz, changed_by = $9::text, changed_at = $10::timestamptz
WHERE id = $1::bigint
