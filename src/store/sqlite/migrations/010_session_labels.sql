-- What a worker carries for the tasks that require it.
ALTER TABLE stint_session ADD COLUMN labels TEXT NOT NULL DEFAULT '[]';
