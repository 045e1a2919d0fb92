/* What SQLite does with no queue around it: WAL, synchronous=FULL, one connection.
 *   sqlite drain FILE TASKS BATCH    claims and finishes TASKS in batches: two commits a batch
 *   sqlite insert FILE SECONDS       inserts one by one, a commit (an fsync) each
 * Prints {"tasks_per_s": …}. FILE must not exist. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// What everybody stores, see measure.py.
#define INPUT \
    "{\"n\":1,\"at\":0,\"user\":\"customer-000123\"" \
    ",\"action\":\"send_invoice\",\"language\":\"en\",\"filler\":\"----------\"}"

static sqlite3* database;

static double Now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void Fail(void) {
    fprintf(stderr, "sqlite: %s\n", sqlite3_errmsg(database));
    exit(1);
}

static void Execute(const char* statement) {
    if (sqlite3_exec(database, statement, NULL, NULL, NULL) != SQLITE_OK) Fail();
}

static sqlite3_stmt* Prepare(const char* text) {
    sqlite3_stmt* statement = NULL;
    if (sqlite3_prepare_v3(database, text, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL) != SQLITE_OK) Fail();
    return statement;
}

static void Step(sqlite3_stmt* statement) {
    if (sqlite3_step(statement) != SQLITE_DONE) Fail();
    sqlite3_reset(statement);
}

static void Open(const char* file) {
    if (sqlite3_open(file, &database) != SQLITE_OK) Fail();
    Execute("PRAGMA journal_mode = WAL");
    Execute("PRAGMA synchronous = FULL");
    Execute("CREATE TABLE task(id INTEGER PRIMARY KEY, state INT NOT NULL DEFAULT 0, token INT, input TEXT NOT NULL)");
    Execute("CREATE INDEX task_ready ON task(id) WHERE state = 0");
}

static sqlite3_stmt* PrepareInsert(void) {
    return Prepare("INSERT INTO task(input) VALUES ('" INPUT "')");
}

static long Drain(long tasks, int batch) {
    sqlite3_stmt* claim = Prepare(
        "UPDATE task SET state = 1, token = ?1 WHERE id IN (SELECT id FROM task WHERE state = 0 ORDER BY id LIMIT ?2) "
        "RETURNING id, input");
    sqlite3_stmt* finish = Prepare("UPDATE task SET state = 2, token = NULL WHERE id = ?1 AND token = ?2");
    sqlite3_int64* taken = calloc((size_t)batch, sizeof *taken);
    if (taken == NULL) exit(1);
    long done = 0;
    while (done < tasks) {
        int count = 0;
        Execute("BEGIN IMMEDIATE");
        sqlite3_bind_int64(claim, 1, done);
        sqlite3_bind_int(claim, 2, batch);
        while (sqlite3_step(claim) == SQLITE_ROW && count < batch) taken[count++] = sqlite3_column_int64(claim, 0);
        sqlite3_reset(claim);
        Execute("COMMIT");
        if (count == 0) break;
        Execute("BEGIN IMMEDIATE");
        for (int i = 0; i < count; ++i) {
            sqlite3_bind_int64(finish, 1, taken[i]);
            sqlite3_bind_int64(finish, 2, done);
            Step(finish);
        }
        Execute("COMMIT");
        done += count;
    }
    free(taken);
    return done;
}

static long Insert(double seconds) {
    sqlite3_stmt* insert = PrepareInsert();
    long count = 0;
    for (double end = Now() + seconds; Now() < end; ++count) Step(insert);
    return count;
}

int main(int count, char** arguments) {
    if (count < 4) return 2;
    Open(arguments[2]);
    double begun;
    long done;
    if (strcmp(arguments[1], "drain") == 0 && count == 5) {
        sqlite3_stmt* insert = PrepareInsert();
        long tasks = atol(arguments[3]);
        Execute("BEGIN");
        for (long i = 0; i < tasks; ++i) Step(insert);
        Execute("COMMIT");
        Execute("PRAGMA wal_checkpoint(TRUNCATE)");
        begun = Now();
        done = Drain(tasks, atoi(arguments[4]));
    } else if (strcmp(arguments[1], "insert") == 0) {
        begun = Now();
        done = Insert(atof(arguments[3]));
    } else {
        return 2;
    }
    printf("{\"tasks_per_s\": %.1f}\n", (double)done / (Now() - begun));
    return 0;
}
