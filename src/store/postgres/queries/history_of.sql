-- $1 ids, $2 parts
SELECT * FROM $schema$.record_history_ WHERE id = ANY ($1::bigint[]) AND part = ANY ($2::int[])
