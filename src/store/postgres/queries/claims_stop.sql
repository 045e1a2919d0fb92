-- From here to the end of this transaction no claim is under way, and the next statement sees what those before it have taken.
-- Taken before any lock of a row; promote.sql has the other half.
SELECT pg_advisory_xact_lock(hashtextextended('$schema_name$', 7007))
