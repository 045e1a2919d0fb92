-- What was asked, changed; NULL leaves a column as it is. The tasks are in nobody's hands but this transaction's.
-- $1 id, $2 policy, $3 flags, $4 explicit, $5 timeout_ms, $6 set start_by, $7 start_by, $8 set tags, $9 tags (a JSON array each), $10 input
UPDATE $schema$.live v SET
    policy = coalesce(u.policy, v.policy), flags = (u.flags | (v.flags & (128 | 1024)))::smallint, explicit = u.explicit, timeout_ms = nullif(u.timeout_ms, 0),
    start_by = CASE WHEN u.set_start_by THEN u.start_by ELSE v.start_by END,
    tags = CASE WHEN u.set_tags THEN ARRAY(SELECT jsonb_array_elements_text(u.tags::jsonb)) ELSE v.tags END,
    input = coalesce(u.input, v.input)
FROM unnest($1::bigint[], $2::int[], $3::smallint[], $4::smallint[], $5::bigint[], $6::boolean[], $7::timestamptz[], $8::boolean[], $9::text[], $10::text[])
    u(id, policy, flags, explicit, timeout_ms, set_start_by, start_by, set_tags, tags, input)
WHERE v.id = u.id AND v.id = ANY ($1::bigint[])
