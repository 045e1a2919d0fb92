-- What the locked events have fired so far; and always one row with the time. $1 numbers
SELECT n.t, f.event, f.workflow, f.name FROM (SELECT $schema$.now_() AS t OFFSET 0) n
LEFT JOIN (SELECT g.* FROM $schema$.firing g WHERE g.event = ANY ($1::bigint[]) AND g.workflow > '') f ON true
