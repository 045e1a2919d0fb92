-- One at a time asks wait_reaches, and sees what the one before has committed: otherwise two who wait for each other would both
-- find that nobody does.
SELECT pg_advisory_xact_lock(hashtextextended('$schema_name$', 7006))
