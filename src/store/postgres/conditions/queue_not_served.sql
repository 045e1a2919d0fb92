cardinality($2::text[]) > 0 AND q.name <> ALL ($2::text[])
