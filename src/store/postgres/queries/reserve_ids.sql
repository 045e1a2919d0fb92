SELECT $schema$.reserve_ids_($1::int)
