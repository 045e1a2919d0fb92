-- What a commit waits for, and what decides its price.
SELECT s.name, s.setting FROM pg_settings s
WHERE s.name IN ('fsync', 'synchronous_commit', 'full_page_writes', 'wal_sync_method', 'wal_level', 'commit_delay',
                 'synchronous_standby_names')
ORDER BY s.name
