l.type <> ALL ($3::text[])
