-- $1 types, sorted
SELECT pg_advisory_xact_lock(hashtextextended('$schema_name$ type ' || t, 7003)) FROM unnest($1::text[]) t
