-- Which store this is: made once, the same for ever, whatever path leads here and whoever owns the file. What
-- processes keep beside a store, they keep under this name.
CREATE TABLE stint_identity (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL
) STRICT;
INSERT INTO stint_identity (one, id) VALUES (1, lower(hex(randomblob(16))));
