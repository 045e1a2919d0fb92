// stint bench drain | submit | latency: figures that anybody can take again. Real worker processes,
// real settles; done is what the store says is done.
#include <fmt/format.h>

#include <atomic>
#include <charconv>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "cli/percentiles.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/workers.h"
#include "node/open_store.h"

namespace stint::cli {

namespace {

constexpr const char* kQueue = "bench";
constexpr int kFillBatch = 1'000;  // tasks per submit before a drain
constexpr Duration kCanary = std::chrono::milliseconds{500};

struct BenchOptions {
    int tasks = 0;  // 0 = the kind's own default
    int slots = 16;
    int batch = 0;  // 0 = the kind's own default
    int processes = 1;
    int clients = 16;
    bool in_place = false;
    bool force = false;
};

double Seconds(base::Instant from, base::Instant to) {
    return std::chrono::duration<double>(to - from).count();
}

// The store that is measured, and everything that ends with it. Members are destroyed from the
// last: workers, client, the store itself.
class Bench {
public:
    Bench(Invocation& invocation, const BenchOptions& options, int tasks, int batch)
        : invocation_(invocation), options_(options), tasks_(tasks), batch_(batch) {
        if (!options.in_place) scratch_.emplace(invocation.store_url());
        url_ = scratch_ ? scratch_->url() : invocation.store_url();
        client_.emplace(node::Client::Open(url_, node::Client::IfMissing::kCreate, invocation.log())
        );
        if (options.in_place && !options.force && !client_->Counts({}).empty()) {
            throw CommandError(
                kConflict,
                "this store holds tasks already, which the benchmark would disturb; leave "
                "--in-place out, or add --force"
            );
        }
    }

    // All of it away, so that a failure to remove the store is told.
    void Finish() {
        workers_.reset();
        client_.reset();
        if (scratch_) scratch_->Destroy();
    }

    Invocation& invocation() { return invocation_; }
    const BenchOptions& options() const { return options_; }
    node::Client& client() { return *client_; }
    const StopOnSignal& signals() const { return signals_; }
    int tasks() const { return tasks_; }
    int batch() const { return batch_; }

    void StartWorkers(int prefetch = 0) {
        workers_.emplace(
            url_,
            std::vector<std::string>{
                "--bench-types",
                "--queues",
                kQueue,
                "--slots",
                std::to_string(options_.slots),
                "--prefetch",
                std::to_string(prefetch),
                "--poll-max",
                "100ms"}
        );
        workers_->Start(options_.processes);
        workers_->AwaitLive(client(), signals_);
    }
    void CheckWorkers() {
        CheckSignals(signals_);
        if (workers_) workers_->CheckAlive();
    }

    std::vector<model::NewTask> Requests(const char* type, int count) const {
        model::NewTask task;
        task.type = type;
        task.queue = kQueue;
        task.input = R"({"n":1})";
        task.actor = "bench";
        return std::vector<model::NewTask>(static_cast<std::size_t>(count), task);
    }

    // Sequential small commits: what this store on this disk can do at the most, one by one.
    double Canary() {
        base::Clock& clock = base::SystemClock();
        model::QueueChange change{.name = "bench-canary"};
        base::Instant begun = clock.Now();
        int commits = 0;
        do {
            change.cap = 1'000'000 + commits;
            client().ChangeQueue(change, "bench");
            ++commits;
        } while (clock.Now() - begun < kCanary);
        return commits / Seconds(begun, clock.Now());
    }

    std::int64_t Count(model::State state) {
        model::TaskFilter filter;
        filter.queues = {kQueue};
        filter.states = {state};
        std::int64_t sum = 0;
        for (const auto& [key, count] : client().Counts(filter)) sum += count;
        return sum;
    }

    void SetPaused(bool paused) {
        client().ChangeQueue({.name = kQueue, .paused = paused}, "bench");
    }

    base::OrderedJson Header(const char* kind) {
        node::StoreInfo info = client().Info();
        return {
            {"bench", kind},
            {"store", info.kind},
            {"store_version", info.version},
            {"durability", info.durability},
            {"tasks", tasks_},
        };
    }

    void Print(const base::OrderedJson& result) {
        std::vector<std::pair<std::string, Cell>> facts;
        for (const auto& [name, value] : result.items()) {
            std::string text = value.is_string() ? value.get<std::string>()
                               : value.is_number_float()
                                   ? fmt::format("{:.2f}", value.get<double>())
                                   : base::JsonText(value);
            facts.push_back({name, {text}});
        }
        invocation_.out().Print(facts, result, result["bench"].get<std::string>());
    }

private:
    StopOnSignal signals_;
    Invocation& invocation_;
    const BenchOptions& options_;
    const int tasks_;
    const int batch_;
    std::string url_;
    std::optional<node::ScratchStore> scratch_;
    std::optional<node::Client> client_;
    std::optional<WorkerProcesses> workers_;
};

// ---- drain -------------------------------------------------------------------------------------

void Fill(Bench& bench, const char* type) {
    ProgressBar bar(bench.invocation().progress(), static_cast<std::size_t>(bench.tasks()));
    auto requests = bench.Requests(type, kFillBatch);
    for (int sent = 0; sent < bench.tasks(); sent += kFillBatch) {
        CheckSignals(bench.signals());
        auto count = static_cast<std::size_t>(std::min(kFillBatch, bench.tasks() - sent));
        for (auto& reply : bench.client().Submit({requests.data(), count})) Need(std::move(reply));
        bar.Update(static_cast<std::size_t>(sent));
    }
}

int Drain(Invocation& invocation, const BenchOptions& options) {
    int tasks = options.tasks > 0 ? options.tasks : 10'000;
    Bench bench(invocation, options, tasks, options.batch > 0 ? options.batch : 2 * options.slots);
    int prefetch = std::max(0, bench.batch() - options.slots);
    double canary = bench.Canary();
    // The queue is held back until all workers are there, so that only the drain is measured.
    bench.SetPaused(true);
    Fill(bench, "bench.noop");
    bench.StartWorkers(prefetch);
    base::Clock& clock = base::SystemClock();
    base::Instant begun = clock.Now();
    bench.SetPaused(false);
    while (bench.Count(model::State::kOpen) + bench.Count(model::State::kInProgress) > 0) {
        bench.CheckWorkers();
        Pause(bench.signals(), Duration{50});
    }
    double seconds = Seconds(begun, clock.Now());
    std::int64_t complete = bench.Count(model::State::kComplete);
    base::OrderedJson result = bench.Header("drain");
    result["processes"] = options.processes;
    result["slots"] = options.slots;
    result["prefetch"] = prefetch;
    result["complete"] = complete;
    result["seconds"] = seconds;
    result["tasks_per_s"] = static_cast<double>(complete) / seconds;
    result["canary_commits_per_s"] = canary;
    bench.Print(result);
    bench.Finish();
    return complete == tasks ? kOk : kFailed;
}

// ---- submit ------------------------------------------------------------------------------------

struct SubmitTimes {
    std::vector<double> milliseconds;
    double seconds = 0;
};

SubmitTimes SubmitFromThreads(Bench& bench) {
    std::atomic<int> next{0};
    std::mutex mutex;
    SubmitTimes times;
    std::string problem;
    base::Clock& clock = base::SystemClock();
    auto work = [&] {
        auto requests = bench.Requests("bench.noop", bench.batch());
        std::vector<double> own;
        try {
            while (bench.signals().signal() == 0) {
                int sent = next.fetch_add(bench.batch());
                if (sent >= bench.tasks()) break;
                auto count =
                    static_cast<std::size_t>(std::min(bench.batch(), bench.tasks() - sent));
                base::Instant begun = clock.Now();
                for (auto& reply : bench.client().Submit({requests.data(), count})) {
                    Need(std::move(reply));
                }
                own.push_back(Seconds(begun, clock.Now()) * 1000);
            }
        } catch (const std::exception& error) {
            std::lock_guard guard(mutex);
            problem = error.what();
        }
        std::lock_guard guard(mutex);
        times.milliseconds.insert(times.milliseconds.end(), own.begin(), own.end());
    };
    base::Instant begun = clock.Now();
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < bench.options().clients; ++i) threads.emplace_back(work);
    }
    times.seconds = Seconds(begun, clock.Now());
    CheckSignals(bench.signals());
    if (!problem.empty()) throw CommandError(kFailed, problem);
    return times;
}

void AddPercentiles(base::OrderedJson& result, const char* what, std::vector<double> samples) {
    Percentiles percentiles = Summarise(std::move(samples));
    result[fmt::format("{}_p50_ms", what)] = percentiles.p50;
    result[fmt::format("{}_p95_ms", what)] = percentiles.p95;
    result[fmt::format("{}_p99_ms", what)] = percentiles.p99;
    result[fmt::format("{}_max_ms", what)] = percentiles.max;
}

int SubmitBench(Invocation& invocation, const BenchOptions& options) {
    int tasks = options.tasks > 0 ? options.tasks : 10'000;
    Bench bench(invocation, options, tasks, options.batch > 0 ? options.batch : 1);
    double canary = bench.Canary();
    std::int64_t before = bench.Count(model::State::kOpen);
    SubmitTimes times = SubmitFromThreads(bench);
    std::int64_t stored = bench.Count(model::State::kOpen) - before;
    base::OrderedJson result = bench.Header("submit");
    result["clients"] = options.clients;
    result["batch"] = bench.batch();
    result["stored"] = stored;
    result["seconds"] = times.seconds;
    result["tasks_per_s"] = static_cast<double>(stored) / times.seconds;
    AddPercentiles(result, "submit", std::move(times.milliseconds));
    result["canary_commits_per_s"] = canary;
    bench.Print(result);
    bench.Finish();
    return stored == tasks ? kOk : kFailed;
}

// ---- latency -----------------------------------------------------------------------------------

// Milliseconds from just before the submit to the start of the handler, in another process.
double OneLatency(Bench& bench, std::span<const model::NewTask> request) {
    base::Instant begun = base::SystemClock().Now();
    node::SubmitReply reply = Need(bench.client().Submit(request).at(0));
    std::int64_t started = 0;
    auto left = bench.client().Wait(
        {reply.id},
        std::chrono::seconds{30},
        [&](const node::FinishedTask& task) {
            const std::string& text = task.output;
            std::from_chars(text.data(), text.data() + text.size(), started);
        },
        bench.signals().token()
    );
    CheckSignals(bench.signals());
    if (!left.empty() || started == 0) {
        throw CommandError(kFailed, "a task was not run within 30 s");
    }
    return static_cast<double>(started - begun.time_since_epoch().count()) / 1e6;
}

int LatencyBench(Invocation& invocation, const BenchOptions& options) {
    constexpr int kWarmUp = 20;
    int tasks = options.tasks > 0 ? options.tasks : 300;
    Bench bench(invocation, options, tasks, 1);
    double canary = bench.Canary();
    bench.StartWorkers();
    auto request = bench.Requests("bench.stamp", 1);
    std::vector<double> samples;
    ProgressBar bar(invocation.progress(), static_cast<std::size_t>(tasks));
    for (int i = 0; i < kWarmUp + tasks; ++i) {
        bench.CheckWorkers();
        double latency = OneLatency(bench, request);
        if (i >= kWarmUp) samples.push_back(latency);
        bar.Update(samples.size());
    }
    bar.Finish();
    base::OrderedJson result = bench.Header("latency");
    result["processes"] = options.processes;
    result["slots"] = options.slots;
    AddPercentiles(result, "start", std::move(samples));
    result["canary_commits_per_s"] = canary;
    bench.Print(result);
    bench.Finish();
    return kOk;
}

// ---- words -------------------------------------------------------------------------------------

void CheckOptions(const BenchOptions& options) {
    auto positive = [](const char* name, int value, int most) {
        if (value >= 1 && value <= most) return;
        throw CommandError(
            kUsage, fmt::format("{} is {}; it must be between 1 and {}", name, value, most)
        );
    };
    if (options.tasks != 0) positive("--tasks", options.tasks, 100'000'000);
    if (options.batch != 0) positive("--batch", options.batch, model::limits::kSlots);
    positive("--slots", options.slots, model::limits::kSlots);
    positive("--processes", options.processes, 64);
    positive("--clients", options.clients, 1'000);
}

void DefineWhere(Syntax& syntax, BenchOptions& options) {
    syntax.Switch("--in-place", options.in_place, "measure the store itself, not a fresh one");
    syntax.Switch("--force", options.force, "with --in-place: although it holds tasks");
}
void DefineWorkers(Syntax& syntax, BenchOptions& options) {
    syntax.Number("--slots", options.slots, "N", "tasks at once in each worker (16)");
    syntax.Number("--processes", options.processes, "N", "worker processes (1)");
}

void DefineDrain(Syntax& syntax, BenchOptions& options) {
    syntax.Number("--tasks", options.tasks, "N", "how many (10000)");
    DefineWorkers(syntax, options);
    syntax.Number("--batch", options.batch, "N", "tasks a worker claims at once (twice its slots)");
    DefineWhere(syntax, options);
}
void DefineSubmit(Syntax& syntax, BenchOptions& options) {
    syntax.Number("--tasks", options.tasks, "N", "how many (10000)");
    syntax.Number("--clients", options.clients, "N", "submitting threads (16)");
    syntax.Number("--batch", options.batch, "N", "tasks per submit (1)");
    DefineWhere(syntax, options);
}
void DefineLatency(Syntax& syntax, BenchOptions& options) {
    syntax.Number("--tasks", options.tasks, "N", "how many, one after the other (300)");
    DefineWorkers(syntax, options);
    DefineWhere(syntax, options);
}

}  // namespace

void AddBench(Program& program) {
    CLI::App& group = program.Group(
        program.root(),
        "bench",
        "Measures, on a fresh store beside yours that is removed afterwards."
    );
    auto add =
        [&](const char* name, const char* summary, const char* example, auto define, auto body) {
            program.Command<BenchOptions>(
                group,
                name,
                summary,
                example,
                define,
                [body](Invocation& invocation, const BenchOptions& options) {
                    CheckOptions(options);
                    return body(invocation, options);
                }
            );
        };
    add("drain",
        "How fast workers finish what waits: claim, run a no-op, settle, history, audit.",
        "stint bench drain --tasks 100000 --slots 64 -o json",
        DefineDrain,
        Drain);
    add("submit",
        "How fast tasks are accepted, durably, from several threads.",
        "stint bench submit --clients 16\nstint bench submit --clients 1 --batch 1000",
        DefineSubmit,
        SubmitBench);
    add("latency",
        "How long from a submit to the start of the handler in another process.",
        "stint bench latency --store postgres://user@host/database",
        DefineLatency,
        LatencyBench);
}

}  // namespace stint::cli
