-- Idle workers hear of what the transaction stored as soon as it is committed. $1 queues
SELECT pg_notify('$schema_name$_task_available', q) FROM unnest($1::text[]) q
