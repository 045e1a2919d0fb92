-- One change of definitions at a time.
SELECT r.revision FROM $schema$.workflow_revision r FOR UPDATE
