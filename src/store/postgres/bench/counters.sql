-- Commits of this database, and how far the server's log has come.
SELECT d.xact_commit, pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint
FROM pg_stat_database d WHERE d.datname = current_database()
