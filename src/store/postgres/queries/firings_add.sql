-- A second record of the same is a violation (23505): the lock on the event was to prevent it.
-- $1 event, $2 workflow, $3 name, $4 tenant, $5 version, $6 kind, $7 task, $8 depth, $9 message
INSERT INTO $schema$.firing(event, workflow, name, tenant, version, kind, task, depth, message, at)
SELECT u.event, u.workflow, u.name, u.tenant, u.version, u.kind, u.task, u.depth, u.message, n.t
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::int[], $6::smallint[], $7::bigint[], $8::int[], $9::text[])
    u(event, workflow, name, tenant, version, kind, task, depth, message), (SELECT $schema$.now_() AS t OFFSET 0) n
