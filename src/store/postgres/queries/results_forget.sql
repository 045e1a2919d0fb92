-- $1 tasks whose records are gone; one that has items yet stays for the next time
DELETE FROM $schema$.task_result r WHERE r.task = ANY ($1::bigint[])
    AND (SELECT i.task FROM $schema$.item i WHERE i.task = r.task LIMIT 1) IS NULL
