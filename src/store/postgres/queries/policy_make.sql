SELECT $schema$.policy_of_($1::text)
