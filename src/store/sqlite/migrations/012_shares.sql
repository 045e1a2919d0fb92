-- Queues that tenants share: how far each tenant is ahead, as JSON.
CREATE TABLE stint_share (
    queue TEXT PRIMARY KEY,
    leads TEXT NOT NULL
) STRICT, WITHOUT ROWID;
