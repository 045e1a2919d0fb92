-- One at a time for each key, until the end of the transaction; in one order for all. $1 keys
SELECT pg_advisory_xact_lock(k.h)
FROM (SELECT DISTINCT hashtextextended('$schema_name$ key ' || t, 7004) AS h FROM unnest($1::text[]) t ORDER BY 1) k
