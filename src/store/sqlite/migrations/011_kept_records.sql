-- When to see whether the task of a result is still kept, as for flows.
ALTER TABLE stint_result RENAME COLUMN checked_at TO look_at;
DROP INDEX stint_result_checked;
CREATE INDEX stint_result_look ON stint_result (look_at);
-- Deletions that a node took and has not begun.
CREATE INDEX stint_deletion_taken ON stint_deletion (due_at) WHERE state = 1;
-- The tasks that flows may still read.
CREATE INDEX stint_flow_step_open ON stint_flow_step (child) WHERE state = 0 AND child IS NOT NULL;
