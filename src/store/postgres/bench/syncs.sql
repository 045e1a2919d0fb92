-- How often the log was forced to the disk; up to PostgreSQL 17.
SELECT w.wal_sync FROM pg_stat_wal w
