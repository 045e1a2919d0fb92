-- $1 event, $2 task, $3 workflow, $4 tenant of the workflow, $5 limit
SELECT f.event, f.workflow, f.name, f.tenant, f.version, f.kind, f.task, f.message, f.at FROM $schema$.firing f
WHERE ($1::bigint IS NULL OR f.event = $1::bigint) AND ($2::bigint IS NULL OR f.task = $2::bigint)
    AND ($3::text IS NULL OR (f.workflow = $3::text AND f.tenant = $4::bigint))
ORDER BY f.event DESC, f.workflow DESC, f.name DESC LIMIT $5::int
