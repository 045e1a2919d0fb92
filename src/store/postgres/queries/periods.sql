SELECT first_id, no FROM $schema$.period ORDER BY first_id
