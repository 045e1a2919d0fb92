-- Before the places of blocked tasks, as whoever ends what they wait for. $1 tasks, sorted
SELECT z.task FROM $schema$.wait z WHERE z.task = ANY ($1::bigint[]) ORDER BY z.task FOR UPDATE
