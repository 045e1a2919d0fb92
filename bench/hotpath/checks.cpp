// What a hot-path shape must also be able to do, with figures. Runs shape F (shape E with the
// complete claim).
//   checks <conninfo> <shapes/f.sql> [rows, default 1000000]
#include "hotpath.h"

#include <cstring>
#include <mutex>
#include <set>

using namespace hotpath;

namespace {

PGconn* db;
Shape shape;
std::string info;
long rows = 1000000;
int failed = 0;

void Check(bool ok, const char* what) {
    std::printf("  %s %s\n", ok ? "ok  " : "FAIL", what);
    failed += !ok;
}
long Number(const std::string& sql) {
    PGresult* r = Must(db, PQexec(db, sql.c_str()));
    const long n = std::atol(PQgetvalue(r, 0, 0));
    PQclear(r);
    return n;
}
void Reset() {
    if (db) PQfinish(db);
    db = Connect(info, shape, false);
    Run(db, "DROP SCHEMA IF EXISTS hotpath CASCADE; CREATE SCHEMA hotpath");
    Run(db, Load("shapes/common.sql").schema + shape.schema);
    PQfinish(db);
    db = Connect(info, shape, true);
    next_id = 1;
}
void Fill(long n, int lane) {  // n waiting tasks in one statement: as submit, without the audit
    const std::string base = std::to_string(next_id.fetch_add(n) - 1);
    Run(db,
        "WITH t AS (INSERT INTO task(id, lane, pos, input) SELECT " + base + " + g, " +
            std::to_string(lane) + ", nextval('pos_seq'), '{}' FROM generate_series(1, " +
            std::to_string(n) +
            ") g RETURNING id, lane, pos) INSERT INTO ready(lane, pos, task) SELECT lane, pos, id "
            "FROM t");
}
Worker NewWorker(long session = 1) {
    return Worker{.conn = Connect(info, shape, true), .session = session, .complete_claim = true};
}
double ClaimMs(Worker& w, int times = 20) {  // median claim of 100
    std::vector<double> t;
    for (int i = 0; i < times; ++i) {
        const double t0 = Now();
        const auto b = w.Claim(100);
        t.push_back((Now() - t0) * 1e3);
        if (!b.ids.empty()) w.Settle(b);
    }
    std::sort(t.begin(), t.end());
    return t[t.size() / 2];
}
PGresult* Query(const char* sql, const std::vector<std::string>& args) {
    std::vector<const char*> v;
    for (const auto& a : args) v.push_back(a.c_str());
    return Must(
        db,
        PQexecParams(db, sql, static_cast<int>(v.size()), nullptr, v.data(), nullptr, nullptr, 0)
    );
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    info = argv[1];
    shape = Load(argv[2]);
    if (argc > 3) rows = std::atol(argv[3]);

    std::printf("fence and audit\n");
    Reset();
    Fill(1000, 1);
    auto w = NewWorker();
    auto b = w.Claim(10);
    auto stale = b;
    stale.token = "00000000-0000-0000-0000-000000000001";
    Check(w.TrySettle(stale) == 0, "wrong token: nothing accepted");
    auto half = b;
    half.ids.resize(5);
    Check(w.TrySettle(half) == 5 && w.TrySettle(half) == 0, "part of a batch is accepted once");
    Check(
        w.TrySettle(b) == 5 && Number("SELECT count(*) FROM lease") == 0,
        "the rest is accepted once, the lease is gone"
    );
    Submit(db, 3);
    Check(
        Number("SELECT count(*) FROM audit_entry WHERE task = 1001") == 1,
        "submit has an audit entry"
    );
    Run(db, "UPDATE session SET lease_until = clock_timestamp() - interval '1 s' WHERE id = 1");
    Check(w.Claim(10).ids.empty(), "an expired session claims nothing");
    Run(db, "UPDATE session SET lease_until = clock_timestamp() + interval '1 day'");

    std::printf("strict priority, types, labels\n");
    Reset();
    Run(db,
        "INSERT INTO lane(id, priority) VALUES (2, 200); INSERT INTO lane(id, priority, type) "
        "VALUES (3, 250, 2); INSERT INTO lane(id, priority, labels) VALUES (4, 255, '{gpu}')");
    Fill(1000, 1);
    Fill(10, 2);
    Fill(10, 3);
    Fill(10, 4);
    Fill(5, 2);
    w = NewWorker();
    b = w.Claim(50);
    Check(
        std::count(b.lanes.begin(), b.lanes.end(), 2) == 15 &&
            std::count(b.lanes.begin(), b.lanes.end(), 1) == 35,
        "higher priority first; foreign type and missing label not taken"
    );
    w.types = "{1,2}";
    w.labels = "{gpu,arm}";
    b = w.Claim(30);
    Check(
        std::count(b.lanes.begin(), b.lanes.end(), 4) == 10 &&
            std::count(b.lanes.begin(), b.lanes.end(), 3) == 10,
        "a claimer with the type and label takes them first"
    );

    std::printf("claim cost: %ld future, %ld blocked at the head, tenants\n", rows, rows);
    Reset();
    Fill(30000, 1);
    Run(db, "VACUUM ANALYZE");
    w = NewWorker();
    const double base = ClaimMs(w);
    std::printf("       claim of 100, 30 k waiting: %.2f ms\n", base);
    Run(db,
        "INSERT INTO later SELECT clock_timestamp() + interval '1 day' + g * interval '1 ms', g + "
        "100000000, 1 FROM generate_series(1, " +
            std::to_string(rows) + ") g");
    std::printf("       ... with %ld future tasks beside: %.2f ms\n", rows, ClaimMs(w));
    double t0 = Now();
    PQclear(Query(shape.statements["promote"].c_str(), {"1000"}));
    std::printf("       promote with nothing due: %.2f ms\n", (Now() - t0) * 1e3);
    Run(db,
        "WITH t AS (INSERT INTO task(id, lane, input) SELECT 50000000 + g, 1, '{}' FROM "
        "generate_series(1, 100000) g RETURNING id) INSERT INTO later SELECT clock_timestamp() - "
        "interval '1 s', id, 1 FROM t");
    t0 = Now();
    long promoted = 0;
    for (long n = 1; n > 0; promoted += n) {
        PGresult* r = Query(shape.statements["promote"].c_str(), {"1000"});
        n = std::atol(PQgetvalue(r, 0, 0));
        PQclear(r);
    }
    std::printf("       promote of due tasks: %.0f/s\n", promoted / (Now() - t0));
    Check(
        promoted == 100000 && Number("SELECT count(*) FROM later") == rows,
        "only due tasks became ready"
    );
    Run(db,
        "INSERT INTO lane(id, priority, resource) VALUES (7, 250, 70); INSERT INTO slot SELECT 70, "
        "g, 1, 1 FROM generate_series(1, 64) g");
    Fill(rows, 7);
    std::printf(
        "       ... with %ld higher-priority tasks waiting for a full resource: %.2f ms\n",
        rows,
        ClaimMs(w)
    );
    b = w.Claim(10);
    Check(
        !b.lanes.empty() && std::count(b.lanes.begin(), b.lanes.end(), 1) == 10,
        "nobody takes the blocked tasks"
    );
    Run(db, "UPDATE slot SET lease = NULL WHERE no = 5");
    b = w.Claim(10);
    Check(
        std::count(b.lanes.begin(), b.lanes.end(), 7) == 10,
        "a freed slot opens the lane at the next claim"
    );

    std::printf("cancel and edit while waiting, %ld waiting\n", rows);
    std::vector<double> tc, te;
    const long some = next_id - 1000;
    for (long i = 0; i < 100; ++i) {
        t0 = Now();
        PGresult* r = Query(shape.statements["cancel"].c_str(), {std::to_string(some + i)});
        tc.push_back((Now() - t0) * 1e3);
        failed += std::strcmp(PQgetvalue(r, 0, 0), "1") != 0;
        PQclear(r);
        t0 = Now();
        r = Query(
            shape.statements["edit"].c_str(),
            {std::to_string(some + 200 + i), "1", "{\"edited\":1}"}
        );
        te.push_back((Now() - t0) * 1e3);
        failed += std::strcmp(PQgetvalue(r, 0, 0), "1") != 0;
        PQclear(r);
    }
    std::sort(tc.begin(), tc.end());
    std::sort(te.begin(), te.end());
    std::printf("       cancel %.2f ms, edit (new priority and input) %.2f ms\n", tc[50], te[50]);
    Check(
        Number(
            "SELECT count(*) FROM ready WHERE task BETWEEN " + std::to_string(some) + " AND " +
            std::to_string(some + 99)
        ) == 0 &&
            Number(
                "SELECT count(*) FROM ready WHERE lane = 1 AND task BETWEEN " +
                std::to_string(some + 200) + " AND " + std::to_string(some + 299)
            ) == 100,
        "cancelled tasks left, edited tasks moved to their new lane"
    );

    std::printf("1000 tenants\n");
    Reset();
    Run(db, "INSERT INTO lane(id, tenant) SELECT g, g FROM generate_series(2, 1000) g");
    Fill(rows, 1);
    Run(db,
        "WITH t AS (INSERT INTO task(id, lane, pos, input) SELECT 10000000 + g, 2 + g % 999, "
        "nextval('pos_seq'), '{}' FROM generate_series(1, 99900) g RETURNING id, lane, pos) INSERT "
        "INTO ready(lane, pos, task) SELECT lane, pos, id FROM t");
    Run(db, "VACUUM ANALYZE");
    w = NewWorker();
    w.tenant_quota = 1;
    std::map<int, long> got;
    std::vector<double> tt;
    for (int i = 0; i < 100; ++i) {
        t0 = Now();
        b = w.Claim(100);
        tt.push_back((Now() - t0) * 1e3);
        for (const int lane : b.lanes) ++got[lane];
        w.first_tenant = *std::max_element(b.lanes.begin(), b.lanes.end()) % 1000 + 1;
        w.Settle(b);
    }
    std::sort(tt.begin(), tt.end());
    long lo = rows, hi = 0;
    for (const auto& [lane, n] : got) lo = std::min(lo, n), hi = std::max(hi, n);
    std::printf(
        "       claim of 100 from 1000 tenants: %.2f ms; tasks per tenant after 10 000: %ld to "
        "%ld\n",
        tt[50],
        lo,
        hi
    );
    Check(
        got.size() == 1000 && hi - lo <= 1,
        "every tenant got the same, one of them with a backlog of all rows"
    );
    Run(db, "DELETE FROM ready WHERE lane > 1");
    std::printf(
        "       claim of 100 when 999 of 1000 lanes are empty: %.2f ms\n",
        (w.tenant_quota = 100, ClaimMs(w))
    );

    std::printf("ordered keys\n");
    Reset();
    Run(db, R"(
CREATE FUNCTION fifo_submit(p_key bigint, p_task bigint, p_lane int) RETURNS void
LANGUAGE plpgsql AS $f$
DECLARE v_pos bigint; v_head bigint;
BEGIN
  INSERT INTO fifo(key) VALUES (p_key) ON CONFLICT DO NOTHING;
  SELECT task INTO v_head FROM fifo WHERE key = p_key FOR UPDATE;
  v_pos := nextval('pos_seq');
  INSERT INTO task(id, lane, pos, input) VALUES (p_task, p_lane, v_pos, p_key::text);
  IF v_head IS NULL THEN
    UPDATE fifo SET task = p_task WHERE key = p_key;
    INSERT INTO ready(lane, pos, task) VALUES (p_lane, v_pos, p_task);
  ELSE INSERT INTO fifo_wait(key, pos, task, lane) VALUES (p_key, v_pos, p_task, p_lane); END IF;
END $f$;
CREATE FUNCTION fifo_next(p_tasks bigint[]) RETURNS void LANGUAGE sql AS $f$
  WITH k AS MATERIALIZED (
    SELECT key FROM fifo WHERE key IN (SELECT input::bigint FROM task WHERE id = ANY (p_tasks))
    AND task = ANY (p_tasks) ORDER BY key FOR UPDATE),
  n AS MATERIALIZED (
    SELECT k.key, w.pos, w.task, w.lane, nextval('pos_seq') AS now_pos FROM k CROSS JOIN LATERAL (
      SELECT * FROM fifo_wait w WHERE w.key = k.key ORDER BY w.pos LIMIT 1) w),
  d AS (DELETE FROM fifo_wait w USING n WHERE w.key = n.key AND w.pos = n.pos),
  u AS (UPDATE fifo SET task = n.task FROM k LEFT JOIN n USING (key) WHERE fifo.key = k.key),
  t AS (UPDATE task SET pos = n.now_pos FROM n WHERE id = n.task)
  INSERT INTO ready(lane, pos, task) SELECT lane, now_pos, task FROM n
$f$;
SELECT fifo_submit(g % 500, g, 1) FROM generate_series(1, 5000) g)");
    std::map<long, long> last;
    std::atomic<long> served{0};
    bool ordered = true;
    std::mutex mutex;
    t0 = Now();
    {
        std::vector<std::jthread> threads;
        for (long k = 1; k <= 2; ++k)
            threads.emplace_back([&, k] {
                auto me = NewWorker(k);
                while (served < 5000) {
                    const auto mine = me.Claim(100);
                    if (mine.ids.empty()) {
                        if (Now() - t0 > 30) break;
                        me.marks.clear();
                        continue;
                    }
                    {
                        std::scoped_lock lock(mutex);
                        for (const auto& id : mine.ids) {
                            const long n = std::atol(id.c_str());
                            ordered &= last[n % 500] < n;
                            last[n % 500] = n;
                        }
                    }
                    Run(me.conn, "BEGIN");
                    me.Settle(mine);
                    Run(me.conn,
                        "SELECT fifo_next('" +
                            Array(
                                static_cast<long>(mine.ids.size()),
                                [&](long i) { return mine.ids[i]; }
                            ) +
                            "')");
                    Run(me.conn, "COMMIT");
                    served += static_cast<long>(mine.ids.size());
                }
            });
    }
    std::printf("       500 keys of 10, two workers: %.0f tasks/s\n", served / (Now() - t0));
    Check(ordered && served == 5000, "each key in submit order, one at a time");

    std::printf("late commit below the mark, old snapshot held\n");
    Reset();
    PGconn* pin = Connect(info, shape, false);
    Run(pin, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM session");
    PGconn* slow = Connect(info, shape, true);
    Run(slow, "BEGIN; SELECT pg_current_xact_id()");  // an xid before the position is drawn
    Submit(slow, 1);
    const long dead = rows / 2;
    for (long n = 0; n < dead; n += 50000) Fill(50000, 1);
    w = NewWorker();
    struct Tick {
        double at;
        std::map<long, long> marks;
        std::set<std::string> open;
    };
    auto snapshot = [&] {
        std::set<std::string> open;
        PGresult* r = Must(db, PQexec(db, "SELECT pg_snapshot_xip(pg_current_snapshot())"));
        for (int i = 0; i < PQntuples(r); ++i) open.insert(PQgetvalue(r, i, 0));
        PQclear(r);
        return open;
    };
    std::vector<Tick> ticks = {{Now(), {}, snapshot()}};
    for (auto x = w.Claim(1000); !x.ids.empty(); x = w.Claim(1000)) w.Settle(x);
    Check(snapshot() == ticks[0].open, "no rescan while the slow transaction is open");
    Run(slow, "COMMIT");
    t0 = Now();
    Check(w.Claim(100).ids.empty(), "claims from the mark do not see it");
    if (snapshot() != ticks[0].open)
        w.marks = ticks[0].marks;  // a transaction that was open at the tick has ended: back to the
                                   // mark of that tick
    const double t1 = Now();
    b = w.Claim(100);
    std::printf(
        "       rescan over %ld dead entries, once per ended slow transaction: %.0f ms\n",
        dead,
        (Now() - t1) * 1e3
    );
    Check(b.ids.size() == 1 && b.ids[0] == "1" && Now() - t0 < 10, "claimed after the rescan");
    const double t2 = Now();
    w.marks.clear();
    w.Claim(100);
    std::printf("       (a second rescan: %.0f ms)\n", (Now() - t2) * 1e3);
    w.Settle(b);
    std::printf("audit lookup\n");
    const long id = dead / 2;
    t0 = Now();
    const long entries = Number(
        "SELECT count(*) FROM audit WHERE span @> " + std::to_string(id) + "::bigint AND " +
        std::to_string(id) + " = ANY (ids)"
    );
    std::printf(
        "       entries of task %ld (filled without submit audit): %ld in %.2f ms\n",
        id,
        entries,
        (Now() - t0) * 1e3
    );
    Check(entries == 2, "claim and complete, one entry each");
    std::printf(failed ? "%d FAILED\n" : "all passed\n", failed);
    return failed != 0;
}
