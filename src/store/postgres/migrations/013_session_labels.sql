-- What a worker carries for the tasks that require it.
ALTER TABLE $schema$.session ADD COLUMN labels text[] NOT NULL DEFAULT '{}';
