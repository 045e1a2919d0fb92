-- A claim says that it is under way: whoever sets a limit waits for it (claims_stop.sql), and the statements that follow see what
-- was set before. promote.sql does so for claims that begin with it.
SELECT pg_advisory_xact_lock_shared(hashtextextended('$schema_name$', 7007))
