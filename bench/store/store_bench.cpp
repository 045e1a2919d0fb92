// The shipped stores under the loads that decide a schema, without the engine on top: what is
// measured is the store's own cost. Prints one line per figure.
//
//   store_bench STORE drain TASKS BATCH WORKERS     tasks/s from a full backlog to an empty one
//   store_bench STORE backlog DEEP BATCH WORKERS    the first 50 k of DEEP waiting, beside 50 k of
//   50 k store_bench STORE loop SECONDS BATCH WORKERS [snapshot|xid]
//                     submit, claim, settle in a closed loop, tasks/s per window of ten seconds,
//                     while another session holds an old snapshot or an idle transaction
//   store_bench STORE checks ROWS                   what a claim must not be slowed or confused by
//   store_bench STORE late SECONDS                  a submit whose transaction stays open that long
//
// Give it a database or file of its own: it fills it and does not clean up.
#include <fmt/format.h>
#include <libpq-fe.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "node/open_store.h"
#include "store/store.h"

using namespace std::chrono_literals;
using namespace stint;
using Steady = std::chrono::steady_clock;

namespace {

constexpr std::size_t kSubmitBatch = 1'000;

double Since(Steady::time_point begin) {
    return std::chrono::duration<double>(Steady::now() - begin).count();
}

struct Bench {
    std::string url;
    std::shared_ptr<store::Store> store;

    explicit Bench(const char* address) : url(address), store(node::OpenStore(address, {})) {
        store->PublishTypes(std::vector{
            model::TypeDefaults{.type = "bench"},
            model::TypeDefaults{.type = "other"},
        });
    }

    SessionId Open() {
        store::NewSession session;
        session.id = base::SystemRandom().MakeId<SessionId>();
        session.hostname = "bench";
        session.lease = 24h;
        session.slots = 1'000;
        store->OpenSession(session);
        return session.id;
    }

    // Returns the id of the last one.
    TaskId Fill(
        std::size_t count, const model::NewTask& like = {.type = "bench", .input = "{\"n\":1}"}
    ) {
        std::vector<model::NewTask> tasks(std::min(count, kSubmitBatch), like);
        TaskId last;
        for (std::size_t done = 0; done < count; done += tasks.size()) {
            tasks.resize(std::min(kSubmitBatch, count - done));
            last = store->Submit(tasks).back().id;
        }
        return last;
    }

    std::vector<store::Lease> Claim(SessionId session, int limit, std::string type = "bench") {
        return store->Claim({.session = session, .limit = limit, .types = {std::move(type)}}
        ).leases;
    }

    void Complete(SessionId session, const std::vector<store::Lease>& leases) {
        std::vector<store::Settlement> settlements;
        settlements.reserve(leases.size());
        for (const store::Lease& lease : leases) {
            settlements.push_back(
                {.task = lease.task, .token = lease.token, .session = session, .output = "null"}
            );
        }
        store->Settle(settlements);
    }

    // Tasks per second of `workers` that claim and complete until `wanted` are done or none is
    // left.
    double Drain(std::int64_t wanted, int batch, int workers) {
        std::atomic<std::int64_t> done{0};
        auto begin = Steady::now();
        {
            std::vector<std::jthread> threads;
            for (int i = 0; i < workers; ++i) {
                threads.emplace_back([&] {
                    SessionId session = Open();
                    while (done < wanted) {
                        auto leases = Claim(session, batch);
                        if (leases.empty()) return;
                        Complete(session, leases);
                        done += static_cast<std::int64_t>(leases.size());
                    }
                });
            }
        }
        return static_cast<double>(done) / Since(begin);
    }

    // Milliseconds of the median of `count` calls.
    template <class F>
    double Median(int count, F call) {
        std::vector<double> times;
        for (int i = 0; i < count; ++i) {
            auto begin = Steady::now();
            call();
            times.push_back(Since(begin) * 1e3);
        }
        std::nth_element(times.begin(), times.begin() + count / 2, times.end());
        return times[static_cast<std::size_t>(count) / 2];
    }
};

// A session beside the store's own, for transactions that stay open.
class Beside {
public:
    explicit Beside(const std::string& url) : connection_(PQconnectdb(url.c_str())) {
        if (PQstatus(connection_) != CONNECTION_OK) {
            throw std::runtime_error(PQerrorMessage(connection_));
        }
    }
    ~Beside() { PQfinish(connection_); }
    Beside(const Beside&) = delete;
    Beside& operator=(const Beside&) = delete;
    std::string Do(const char* sql) {
        std::unique_ptr<PGresult, void (*)(PGresult*)> result(PQexec(connection_, sql), PQclear);
        ExecStatusType status = PQresultStatus(result.get());
        if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
            throw std::runtime_error(PQerrorMessage(connection_));
        }
        return PQntuples(result.get()) > 0 ? PQgetvalue(result.get(), 0, 0) : "";
    }
    PGconn* connection() { return connection_; }

private:
    PGconn* connection_;
};

void RunDrain(Bench& bench, int tasks, int batch, int workers) {
    auto begin = Steady::now();
    bench.Fill(static_cast<std::size_t>(tasks));
    double submit = tasks / Since(begin);
    double drain = bench.Drain(INT64_MAX, batch, workers);
    fmt::print(
        "drain {} x {}: {:.0f} tasks/s; bulk submit {:.0f} tasks/s\n", batch, workers, drain, submit
    );
}

void RunBacklog(Bench& bench, int deep, int batch, int workers) {
    constexpr int kSlice = 50'000;
    bench.Fill(kSlice);
    double shallow = bench.Drain(INT64_MAX, batch, workers);
    bench.Fill(static_cast<std::size_t>(deep));
    double first = bench.Drain(kSlice, batch, workers);
    double second = bench.Drain(kSlice, batch, workers);
    fmt::print(
        "backlog: {} waiting {:.0f} tasks/s; {} waiting {:.0f} and {:.0f} tasks/s; ratio {:.2f}\n",
        kSlice,
        shallow,
        deep,
        first,
        second,
        second / shallow
    );
}

void RunLoop(Bench& bench, int seconds, int batch, int workers, const std::string& held) {
    std::unique_ptr<Beside> beside;
    auto hold = [&] {
        beside = std::make_unique<Beside>(bench.url);
        beside->Do("BEGIN ISOLATION LEVEL REPEATABLE READ");
        beside->Do(held == "xid" ? "SELECT pg_current_xact_id()" : "SELECT count(*) FROM pg_class");
    };
    std::atomic<std::int64_t> done{0};
    std::atomic<bool> over{false};
    std::vector<std::jthread> threads;
    for (int i = 0; i < workers; ++i) {
        threads.emplace_back([&] {
            SessionId session = bench.Open();
            while (!over) {
                bench.Fill(static_cast<std::size_t>(batch));
                auto leases = bench.Claim(session, batch);
                bench.Complete(session, leases);
                done += static_cast<std::int64_t>(leases.size());
            }
        });
    }
    constexpr int kWindow = 10;
    double first = 0, last = 0;
    std::this_thread::sleep_for(3s);  // warm
    for (int window = 0; window * kWindow < seconds; ++window) {
        // The first window is without the old transaction: what the others are compared with.
        if (window == 1 && !held.empty()) hold();
        std::int64_t before = done;
        auto begin = Steady::now();
        std::this_thread::sleep_for(std::chrono::seconds{kWindow});
        last = static_cast<double>(done - before) / Since(begin);
        if (window == 0) first = last;
        fmt::print(
            "loop {:>4} s{}: {:.0f} tasks/s, {:.2f} of the first\n",
            window * kWindow,
            beside ? " held" : "",
            last,
            last / first
        );
        std::fflush(stdout);
    }
    over = true;
}

void RunChecks(Bench& bench, int rows) {
    SessionId session = bench.Open();
    auto count = static_cast<std::size_t>(rows);
    auto claim_ms = [&](std::string type) {
        return bench.Median(15, [&] { bench.Complete(session, bench.Claim(session, 100, type)); });
    };
    bench.Fill(30'000);
    double alone = claim_ms("bench");
    auto report = [&](std::string_view what, double ms) {
        fmt::print(
            "{}: claim and settle of 100 takes {:.2f} ms, {:.2f} of {:.2f} ms alone\n",
            what,
            ms,
            ms / alone,
            alone
        );
        std::fflush(stdout);
    };
    bench.Fill(count, {.type = "bench", .input = "{}", .delay = std::chrono::hours{24 * 30}});
    report(fmt::format("{} future tasks beside", rows), claim_ms("bench"));
    bench.Fill(count, {.type = "other", .input = "{}", .priority = 250});
    report(fmt::format("{} of a type that is not served at the head", rows), claim_ms("bench"));
    bench.Fill(count, {.type = "bench", .input = "{}", .queue = "closed", .priority = 250});
    bench.store->SetQueue({.name = "closed", .paused = true}, "bench");
    report(fmt::format("{} behind a paused queue at the head", rows), claim_ms("bench"));
    bench.Fill(count, {.type = "bench", .input = "{}", .priority = 1});
    TaskId waiting = bench.Fill(1, {.type = "bench", .input = "{}", .priority = 1});
    report(fmt::format("{} of a lower priority behind", rows), claim_ms("bench"));
    bench.Fill(10, {.type = "bench", .input = "{\"high\":1}", .priority = 255});
    int high = 0;
    for (const auto& lease : bench.Claim(session, 10)) high += lease.priority == 255 ? 1 : 0;
    fmt::print("strict priority: {} of the 10 claimed first are the 10 highest\n", high);
    fmt::print("edit of one waiting task: {:.2f} ms\n", bench.Median(15, [&] {
        auto edited = bench.store->Edit(waiting, {.priority = 2}, "bench");
        if (!edited) fmt::print("edit: {}\n", edited.error().message);
    }));
    fmt::print("get by id: {:.2f} ms\n", bench.Median(101, [&] { bench.store->Get(waiting); }));
    auto begin = Steady::now();
    bench.store->Cancel({&waiting, 1}, "bench", "not wanted");
    fmt::print("cancel of it: {:.2f} ms\n", Since(begin) * 1e3);
}

void RunLate(Bench& bench, int seconds) {
    Beside beside(bench.url);
    beside.Do("BEGIN");
    auto transaction = bench.store->Borrow(beside.connection());
    if (!transaction) throw std::runtime_error(transaction.error().message);
    model::NewTask late{.type = "bench", .input = "{\"late\":1}"};
    TaskId id = (*transaction)->Submit({&late, 1}).at(0).id;
    SessionId session = bench.Open();
    auto begin = Steady::now();
    std::int64_t others = 0;
    std::vector<double> rates;
    auto window = begin;
    std::int64_t before = 0;
    while (Since(begin) < seconds) {
        bench.Fill(100);
        auto leases = bench.Claim(session, 100);
        bench.Complete(session, leases);
        others += static_cast<std::int64_t>(leases.size());
        if (Since(window) > 10) {
            rates.push_back(static_cast<double>(others - before) / Since(window));
            window = Steady::now();
            before = others;
        }
    }
    beside.Do("COMMIT");
    auto committed = Steady::now();
    bool found = false;
    while (!found && Since(committed) < 60) {
        bench.Fill(100);  // its lane stays busy: the late one is not found by idling
        auto leases = bench.Claim(session, 100);
        bench.Complete(session, leases);
        for (const auto& lease : leases) found = found || lease.task == id;
    }
    fmt::print(
        "late: open for {} s while {} others were done ({:.0f} tasks/s in the first 10 s, {:.0f} "
        "in the "
        "last); claimed {:.2f} s after its commit{}\n",
        seconds,
        others,
        rates.front(),
        rates.back(),
        Since(committed),
        found ? "" : ": NOT FOUND"
    );
}

}  // namespace

int main(int argc, char** argv) try {
    auto number = [&](int i) { return std::atoi(argv[i]); };
    std::string what = argc > 2 ? argv[2] : "";
    if (argc < 4) throw std::runtime_error("usage: see the head of store_bench.cpp");
    Bench bench(argv[1]);
    if (what == "drain" && argc == 6)
        RunDrain(bench, number(3), number(4), number(5));
    else if (what == "backlog" && argc == 6)
        RunBacklog(bench, number(3), number(4), number(5));
    else if (what == "loop" && argc >= 6)
        RunLoop(bench, number(3), number(4), number(5), argc > 6 ? argv[6] : "");
    else if (what == "checks")
        RunChecks(bench, number(3));
    else if (what == "late")
        RunLate(bench, number(3));
    else
        throw std::runtime_error("usage: see the head of store_bench.cpp");
    return 0;
} catch (const std::exception& error) {
    fmt::print(stderr, "store_bench: {}\n", error.what());
    return 1;
}
