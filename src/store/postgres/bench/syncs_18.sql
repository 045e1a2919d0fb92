-- The same from PostgreSQL 18 on.
SELECT sum(i.fsyncs)::bigint FROM pg_stat_io i WHERE i.object = 'wal'
