-- Running tasks that share what some of them hold of resources; NULL of the others. What it says of one that does not run is of its
-- last lease.
ALTER TABLE stint_task ADD COLUMN seat_group INTEGER;
