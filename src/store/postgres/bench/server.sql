-- The process that serves us, and whether it runs where we do.
SELECT pg_backend_pid(), inet_server_addr() IS NULL OR inet_server_addr() IS NOT DISTINCT FROM inet_client_addr()
