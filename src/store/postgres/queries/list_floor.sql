-- Down to which id one look at a list goes, and how many rows it meets: at most $2 live tasks and $2 finished ones below
-- $1, none below $3. $4 parts of history, $5 whether live tasks, $6 whether finished ones are asked for
WITH l AS MATERIALIZED (
    SELECT v.id FROM $schema$.live v WHERE $5::boolean AND v.id < $1::bigint AND v.id >= $3::bigint ORDER BY v.id DESC LIMIT $2::int),
h AS MATERIALIZED (
    SELECT v.id FROM $schema$.history v WHERE $6::boolean AND v.id < $1::bigint AND v.id >= $3::bigint AND v.part = ANY ($4::int[])
    ORDER BY v.id DESC LIMIT $2::int)
SELECT greatest($3::bigint, (SELECT min(id) FROM l HAVING count(*) = $2::int), (SELECT min(id) FROM h HAVING count(*) = $2::int)),
    (SELECT count(*) FROM l) + (SELECT count(*) FROM h)
