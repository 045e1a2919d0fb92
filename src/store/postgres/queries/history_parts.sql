-- Of the history tables there are, and of those that are counted though they are gone.
SELECT l.part FROM $schema$.leaf l WHERE l.parent = 'history'
UNION SELECT t.part FROM $schema$.history_tally t UNION SELECT c.part FROM $schema$.history_change c ORDER BY 1
