SELECT * FROM $schema$.record_live_ WHERE id = ANY ($1::bigint[])
