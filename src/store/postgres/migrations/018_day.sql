-- Part of every statement that writes audit entries, so it must be inlined, which the server does only with a body that is as
-- immutable as the function says: what is extracted from a timestamptz depends on the time zone for all the server knows.
CREATE OR REPLACE FUNCTION $schema$.day_(at timestamptz) RETURNS int LANGUAGE sql IMMUTABLE AS
    'SELECT floor(extract(epoch FROM at AT TIME ZONE ''UTC'') / 86400)::int';
