/* How long after the call of a durable INSERT + NOTIFY another connection has been told of it.
 *   notify CONNINFO SAMPLES GAP_US      prints {"p50_ms": …, "p95_ms": …, "p99_ms": …, "max_ms": …, "seen": …}
 * One process with two threads and a connection each; the listener sleeps in poll(). */
#include <libpq-fe.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

// What everybody stores, see measure.py.
#define INPUT \
    "{\"n\":1,\"at\":0,\"user\":\"customer-000123\"" \
    ",\"action\":\"send_invoice\",\"language\":\"en\",\"filler\":\"----------\"}"

struct Run {
    const char* conninfo;
    int samples;
    double* seen; /* by the number that the notification carries; 0 = not yet */
    atomic_int listening;
    atomic_int stop;
};

static double Now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static void Fail(PGconn* connection) {
    fprintf(stderr, "notify: %s\n", PQerrorMessage(connection));
    exit(1);
}

static PGconn* Connect(const char* conninfo) {
    PGconn* connection = PQconnectdb(conninfo);
    if (PQstatus(connection) != CONNECTION_OK) Fail(connection);
    return connection;
}

static void Execute(PGconn* connection, const char* statement) {
    PGresult* result = PQexec(connection, statement);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) Fail(connection);
    PQclear(result);
}

static void* Listen(void* argument) {
    struct Run* run = argument;
    PGconn* connection = Connect(run->conninfo);
    Execute(connection, "LISTEN compare");
    atomic_store(&run->listening, 1);
    while (!atomic_load(&run->stop)) {
        struct pollfd socket = {.fd = PQsocket(connection), .events = POLLIN};
        poll(&socket, 1, 50);
        if (!PQconsumeInput(connection)) Fail(connection);
        double now = Now();
        for (PGnotify* told; (told = PQnotifies(connection)) != NULL; PQfreemem(told)) {
            int number = atoi(told->extra);
            if (number >= 0 && number < run->samples) run->seen[number] = now;
        }
    }
    PQfinish(connection);
    return NULL;
}

static int Compare(const void* left, const void* right) {
    double a = *(const double*)left, b = *(const double*)right;
    return (a > b) - (a < b);
}

int main(int count, char** arguments) {
    if (count != 4) return 2;
    struct Run run = {.conninfo = arguments[1], .samples = atoi(arguments[2])};
    struct timespec gap = {.tv_sec = 0, .tv_nsec = atol(arguments[3]) * 1000};
    if (run.samples < 1) return 2;
    run.seen = calloc((size_t)run.samples, sizeof *run.seen);
    double* delays = calloc((size_t)run.samples, sizeof *delays);
    double* called = calloc((size_t)run.samples, sizeof *called);
    if (run.seen == NULL || delays == NULL || called == NULL) return 1;
    PGconn* connection = Connect(run.conninfo);
    Execute(connection, "CREATE TABLE IF NOT EXISTS told(id bigserial PRIMARY KEY, payload text)");
    pthread_t listener;
    if (pthread_create(&listener, NULL, Listen, &run) != 0) return 1;
    while (!atomic_load(&run.listening)) nanosleep(&gap, NULL);
    for (int i = 0; i < run.samples; ++i) {
        char statement[512];
        snprintf(statement, sizeof statement,
                 "WITH x AS (INSERT INTO told(payload) VALUES ('" INPUT "') RETURNING 1) "
                 "SELECT pg_notify('compare', '%d') FROM x", i);
        called[i] = Now();
        Execute(connection, statement);
        nanosleep(&gap, NULL);
    }
    struct timespec rest = {.tv_sec = 0, .tv_nsec = 200000000};
    nanosleep(&rest, NULL);
    atomic_store(&run.stop, 1);
    pthread_join(listener, NULL);
    PQfinish(connection);
    int seen = 0;
    for (int i = 0; i < run.samples; ++i) {
        if (run.seen[i] > 0) delays[seen++] = run.seen[i] - called[i];
    }
    if (seen == 0) return 1;
    qsort(delays, (size_t)seen, sizeof *delays, Compare);
    printf("{\"p50_ms\": %.4f, \"p95_ms\": %.4f, \"p99_ms\": %.4f, \"max_ms\": %.4f, \"seen\": %d}\n",
           delays[seen / 2], delays[seen * 95 / 100], delays[seen * 99 / 100], delays[seen - 1], seen);
    return 0;
}
