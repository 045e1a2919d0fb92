SELECT o.state, o.key, o.secret FROM $schema$.outside o WHERE o.task = $1::bigint FOR UPDATE
