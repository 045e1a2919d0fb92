l.suspect AND NOT $4::boolean
