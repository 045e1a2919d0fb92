-- $1 ids, $2 parts
SELECT id, state, output, error, reason, warning FROM $schema$.history WHERE id = ANY ($1::bigint[]) AND part = ANY ($2::int[])
