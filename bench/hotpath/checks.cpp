// What a hot-path shape must also be able to do, with figures: the shape with the complete claim.
//   checks <conninfo> <a|b|c|d|e> [rows, default 1000000] [seconds of the late commit, default 120]
#include "hotpath.h"

#include <cstring>
#include <mutex>
#include <set>

using namespace hotpath;

namespace {

PGconn* db;
Shape shape;
std::string info, letter;
long rows = 1000000, late_seconds = 120;
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
    Run(db, shape.schema);
    PQfinish(db);
    db = Connect(info, shape, true);
    next_id = 1;
}
// Common tables, the shape's own, what the checks need, and the shape's complete claim.
Shape LoadFull() {
    Shape full;
    for (const std::string& part :
         {std::string("common"), letter, std::string("full"), "full_" + letter}) {
        Shape next = Load("shapes/" + part + ".sql");
        full.schema += next.schema;
        for (auto& [name, sql] : next.statements) full.statements[name] = sql;
    }
    return full;
}
void Fill(long n, int lane, int spread = 1) {
    const std::string base = std::to_string(next_id.fetch_add(n) - 1);
    Run(db,
        "SELECT fill(" + base + ", " + std::to_string(n) + ", " + std::to_string(lane) + ", " +
            std::to_string(spread) + ")");
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
    letter = argv[2];
    shape = LoadFull();
    if (argc > 3) rows = std::atol(argv[3]);
    if (argc > 4) late_seconds = std::atol(argv[4]);
    std::printf("shape %s, %ld rows\n", letter.c_str(), rows);

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
        w.TrySettle(b) == 5 && Number("SELECT held()") == 0,
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
        "100000000 FROM generate_series(1, " +
            std::to_string(rows) + ") g");
    std::printf("       ... with %ld future tasks beside: %.2f ms\n", rows, ClaimMs(w));
    double t0 = Now();
    Number("SELECT promote(1000)");
    std::printf("       promote with nothing due: %.2f ms\n", (Now() - t0) * 1e3);
    Run(db,
        "SELECT put_task(50000000 + g, 1, '{}') FROM generate_series(1, 100000) g; INSERT INTO "
        "later SELECT clock_timestamp() - interval '1 s', 50000000 + g FROM generate_series(1, "
        "100000) g");
    t0 = Now();
    long promoted = 0;
    for (long n = 1; n > 0; promoted += n) {
        n = Number("SELECT promote(1000)");
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
            "SELECT waiting(" + std::to_string(some) + ", " + std::to_string(some + 99) + ", NULL)"
        ) == 0 &&
            Number(
                "SELECT waiting(" + std::to_string(some + 200) + ", " + std::to_string(some + 299) +
                ", 1)"
            ) == 100,
        "cancelled tasks left, edited tasks moved to their new lane"
    );

    std::printf("1000 tenants\n");
    Reset();
    Run(db, "INSERT INTO lane(id, tenant) SELECT g, g FROM generate_series(2, 1000) g");
    Fill(rows, 1);
    Fill(99900, 2, 999);
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
    w.tenant_quota = 100;
    w.first_tenant = 2;
    while (true) {  // all but the first, which has the backlog
        b = w.Claim(500);
        w.Settle(b);
        if (std::count(b.lanes.begin(), b.lanes.end(), 1) == static_cast<long>(b.lanes.size()))
            break;
    }
    std::printf(
        "       claim of 100 when 999 of 1000 lanes are empty: %.2f ms\n",
        (w.tenant_quota = 100, ClaimMs(w))
    );

    std::printf("ordered keys\n");
    Reset();
    Run(db, "SELECT fifo_submit(g % 500, g, 1) FROM generate_series(1, 5000) g");
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
                    const auto count = static_cast<long>(mine.ids.size());
                    Run(me.conn,
                        "SELECT fifo_next('" + Array(count, [&](long i) { return mine.ids[i]; }) +
                            "', '" +
                            Array(
                                count,
                                [&](long i) {
                                    return std::to_string(std::atol(mine.ids[i].c_str()) % 500);
                                }
                            ) +
                            "')");
                    Run(me.conn, "COMMIT");
                    served += static_cast<long>(mine.ids.size());
                }
            });
    }
    std::printf("       500 keys of 10, two workers: %.0f tasks/s\n", served / (Now() - t0));
    Check(ordered && served == 5000, "each key in submit order, one at a time");

    std::printf("a submit that stays open for %ld s, old snapshot held\n", late_seconds);
    Reset();
    PGconn* pin = Connect(info, shape, false);
    Run(pin, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM session");
    PGconn* slow = Connect(info, shape, true);
    Run(slow, "BEGIN; SELECT pg_current_xact_id()");  // an xid before the position is drawn
    Submit(slow, 1);
    w = NewWorker();
    const std::map<long, long> marks_before = w.marks;
    long dead = 0;
    double first_rate = 0, rate = 0;
    const double opened = Now();
    while (Now() - opened < static_cast<double>(late_seconds)) {
        t0 = Now();
        long done = 0;
        while (Now() - t0 < std::min(10.0, static_cast<double>(late_seconds) / 2)) {
            Submit(db, 500);
            b = w.Claim(500);
            w.Settle(b);
            done += static_cast<long>(b.ids.size());
        }
        rate = static_cast<double>(done) / (Now() - t0);
        if (first_rate == 0) first_rate = rate;
        dead += done;
    }
    std::printf(
        "       %ld others done meanwhile; %.0f/s in the first window, %.0f/s in the last: %.2f\n",
        dead,
        first_rate,
        rate,
        rate / first_rate
    );
    Run(slow, "COMMIT");
    Check(w.Claim(100).ids.empty(), "claims from the mark do not see it");
    t0 = Now();
    if (letter == "c") {
        Check(Number("SELECT left_behind()") == 1, "found by comparing whole segments");
    } else {
        w.marks =
            marks_before;  // a transaction that was open at the tick has ended: back to its marks
        b = w.Claim(100);
        Check(b.ids.size() == 1 && b.ids[0] == "1", "claimed by a rescan");
        w.Settle(b);
    }
    std::printf("       finding it among %ld that are gone: %.0f ms\n", dead, (Now() - t0) * 1e3);
    std::printf("audit lookup\n");
    const long id = dead / 2;  // submitted, claimed, completed
    t0 = Now();
    const long entries = Number(
        "SELECT count(*) FROM audit WHERE span @> " + std::to_string(id) + "::bigint AND " +
        std::to_string(id) + " = ANY (ids)"
    );
    std::printf("       entries of task %ld: %ld in %.2f ms\n", id, entries, (Now() - t0) * 1e3);
    Check(entries == 3, "submit, claim and complete, one entry each");
    std::printf(failed ? "%d FAILED\n" : "all passed\n", failed);
    return failed != 0;
}
