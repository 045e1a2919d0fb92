SELECT current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),
       (SELECT replace(i.id::text, '-', '') FROM $schema$.identity i)
