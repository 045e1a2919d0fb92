-- Whoever submits tasks of unknown types waits for whoever registers them, and the other way round. $1 types, sorted
SELECT pg_advisory_xact_lock_shared(hashtextextended('$schema_name$ type ' || t, 7003)) FROM unnest($1::text[]) t
