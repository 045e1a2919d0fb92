-- The schema named $1 belongs to a benchmark that lives as long as this transaction.
SELECT pg_try_advisory_xact_lock(hashtextextended($1::text, 7100))
