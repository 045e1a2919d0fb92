-- Tasks that wait for others: the wait, and what it is for. Kept until the waiter is finished.
CREATE TABLE stint_wait (
    task INTEGER PRIMARY KEY,
    pending INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    total INTEGER NOT NULL,
    on_failure INTEGER NOT NULL,
    any INTEGER NOT NULL,
    need_success INTEGER NOT NULL,
    started INTEGER NOT NULL,
    open INTEGER NOT NULL
) STRICT;
CREATE TABLE stint_wait_member (
    waiter INTEGER NOT NULL,
    no INTEGER NOT NULL,
    asked INTEGER NOT NULL,
    task INTEGER NOT NULL,
    ended INTEGER,
    PRIMARY KEY (waiter, no)
) STRICT, WITHOUT ROWID;
CREATE INDEX stint_wait_member_task ON stint_wait_member (task);

DROP VIEW task_task_dep;
DROP TABLE stint_task_dep;
CREATE VIEW task_task_dep AS SELECT DISTINCT waiter AS task_id, task AS depends_on FROM stint_wait_member;
