SELECT $schema$.make_leaf_($1::text, $2::int)
