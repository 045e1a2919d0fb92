// Measures one hot-path shape on PostgreSQL. Usage:
//   hotpath <conninfo> <shape.sql> drain   <tasks> <batch> <workers> [stop-after]   tasks/s from a
//   preloaded backlog hotpath <conninfo> <shape.sql> latency <samples> submit call to claim
//   returned, one by one hotpath <conninfo> <shape.sql> loop    <seconds> <batch> <workers> <pin>
//   submit+claim+settle, tasks/s per 10-s window;
//                                           pin 0: none, 1: idle REPEATABLE READ snapshot, 2: idle
//                                           transaction that has an xid
// MARK=0 in the environment claims from position 0 each time instead of from the remembered mark.
#include "hotpath.h"

using namespace hotpath;

int main(int argc, char** argv) {
    if (argc < 5) return 2;
    const std::string info = argv[1], mode = argv[3];
    const Shape shape = Load(argv[2]);
    const char* mark_env = std::getenv("MARK");
    const bool use_mark = !(mark_env && mark_env[0] == '0');
    auto arg = [&](int i, long otherwise) { return argc > i ? std::atol(argv[i]) : otherwise; };

    PGconn* admin = Connect(info, shape, false);
    Run(admin, "DROP SCHEMA IF EXISTS hotpath CASCADE; CREATE SCHEMA hotpath");
    std::string path = argv[2];
    Run(admin, Load(path.substr(0, path.rfind('/') + 1) + "common.sql").schema);
    Run(admin, shape.schema);
    PQfinish(admin);
    admin = Connect(info, shape, true);
    const bool complete = shape.statements.at("claim").find("$9") != std::string::npos;
    const bool segments = shape.schema.find("FUNCTION janitor") != std::string::npos;

    if (mode == "drain") {
        const long tasks = arg(4, 100000), batch = arg(5, 500), workers = arg(6, 2),
                   stop = arg(7, tasks);
        double t0 = Now();
        for (long done = 0; done < tasks; done += 1000)
            Submit(admin, std::min(1000L, tasks - done));
        const double load = tasks / (Now() - t0);
        Run(admin, "VACUUM ANALYZE");
        Run(admin, "CHECKPOINT");
        std::atomic<long> settled{0};
        std::vector<std::jthread> threads;
        t0 = Now();
        for (long w = 0; w < workers; ++w)
            threads.emplace_back([&, w] {
                Worker worker{
                    .conn = Connect(info, shape, true),
                    .session = w + 1,
                    .use_mark = use_mark,
                    .complete_claim = complete};
                while (settled < stop) {
                    const auto b = worker.Claim(batch);
                    if (b.ids.empty()) break;
                    worker.Settle(b);
                    settled += static_cast<long>(b.ids.size());
                }
                PQfinish(worker.conn);
            });
        threads.clear();
        std::printf(
            "%s drain tasks=%ld batch=%ld workers=%ld stop=%ld: %.0f/s (bulk submit %.0f/s)\n",
            argv[2],
            tasks,
            batch,
            workers,
            stop,
            settled / (Now() - t0),
            load
        );
    } else if (mode == "latency") {
        const long samples = arg(4, 1000);
        Worker worker{
            .conn = Connect(info, shape, true),
            .session = 1,
            .use_mark = use_mark,
            .complete_claim = complete};
        std::vector<double> times;
        for (long i = 0; i < samples; ++i) {
            const double t0 = Now();
            Submit(admin, 1);
            const auto b = worker.Claim(100);
            times.push_back((Now() - t0) * 1e6);
            worker.Settle(b);
        }
        std::sort(times.begin(), times.end());
        std::printf(
            "%s latency n=%ld: p50 %.0f us, p99 %.0f us\n",
            argv[2],
            samples,
            times[samples / 2],
            times[samples * 99 / 100]
        );
    } else if (mode == "loop") {
        const long seconds = arg(4, 80), batch = arg(5, 100), workers = arg(6, 2), pin = arg(7, 0);
        PGconn* holder = Connect(info, shape, false);
        for (int i = 0; i < 20; ++i) Submit(admin, 100);
        if (pin == 1)
            Run(holder, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM session");
        if (pin == 2) Run(holder, "BEGIN; SELECT pg_current_xact_id()");
        std::atomic<long> settled{0};
        std::atomic<bool> stop{false};
        std::vector<std::jthread> threads;
        for (long w = 0; w < workers; ++w)
            threads.emplace_back([&, w] {
                Worker worker{
                    .conn = Connect(info, shape, true),
                    .session = w + 1,
                    .use_mark = use_mark,
                    .complete_claim = complete};
                auto previous = worker.marks;
                double next_tick = Now() + 1;
                while (!stop) {
                    Submit(worker.conn, batch);
                    const auto b = worker.Claim(batch);
                    if (!b.ids.empty()) worker.Settle(b);
                    settled += static_cast<long>(b.ids.size());
                    // Once a tick: start again from the marks of the tick before.
                    if (Now() > next_tick) {
                        std::swap(previous, worker.marks);
                        next_tick = Now() + 1;
                    }
                }
                PQfinish(worker.conn);
            });
        std::printf(
            "%s loop batch=%ld workers=%ld pin=%ld mark=%d:", argv[2], batch, workers, pin, use_mark
        );
        long last = 0;
        double t0 = Now(), from = t0;
        while (Now() - t0 < static_cast<double>(seconds) - 0.5) {
            const double until = from + 10;
            while (Now() < until) {
                std::this_thread::sleep_for(std::chrono::milliseconds(1000));
                if (segments) Run(admin, "SELECT janitor()");
            }
            const long s = settled;
            std::printf(" %.0f", static_cast<double>(s - last) / (Now() - from));
            std::fflush(stdout);
            last = s;
            from = Now();
        }
        stop = true;
        threads.clear();
        std::printf("\n");
        PQfinish(holder);
    }
    PQfinish(admin);
}
