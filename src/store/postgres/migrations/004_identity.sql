-- Which store this is: made once, the same for ever, whatever url leads here and whoever asks. What processes keep
-- beside a store, they keep under this name.
CREATE TABLE $schema$.identity(
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    id uuid NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO $schema$.identity DEFAULT VALUES;
