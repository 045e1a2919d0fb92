-- In the order given. $1 causes
SELECT $schema$.event_depth_(u.cause) FROM unnest($1::bigint[]) WITH ORDINALITY u(cause, ord) ORDER BY u.ord
