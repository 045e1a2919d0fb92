SELECT $schema$.drop_leaf_($1::text, $2::bigint)
