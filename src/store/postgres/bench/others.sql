-- Connections named $1 that are still there. What they have counted is added up when they are gone.
SELECT count(*) FROM pg_stat_activity a WHERE a.application_name = $1::text AND a.pid <> pg_backend_pid()
