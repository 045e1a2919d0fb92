-- Which transactions are under way, and the number of this one: what is above it begins later. A look that has written nothing gets
-- one too, and does not wait for the disk because of it.
SELECT pg_current_snapshot()::text, pg_current_xact_id()::text::bigint
