SELECT e.no, e.tenant, e.source, e.id, e.type, e.data, e.time, e.cause, e.depth, e.state, e.reason, e.tries, e.published_at, e.processed_at
FROM $schema$.published e WHERE e.no = $1::bigint
