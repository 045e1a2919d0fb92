-- What a task that is not finished waits or waited for. $1 waiter
SELECT m.asked, m.task, m.ended FROM $schema$.wait_member m WHERE m.waiter = $1::bigint ORDER BY m.no
