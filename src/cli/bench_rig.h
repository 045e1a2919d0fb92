// What the kinds of stint bench share: a store to measure, workers, a bound in time, the facts, the
// answer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench.h"
#include "cli/bench_facts.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/percentiles.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/workers.h"
#include "model/limits.h"
#include "node/client.h"
#include "node/measure.h"
#include "node/scratch_store.h"

namespace stint::cli {

// A directory for what this run and its workers keep in files: counts, spools.
class BenchDirectory {
public:
    BenchDirectory();
    ~BenchDirectory();
    BenchDirectory(const BenchDirectory&) = delete;
    BenchDirectory& operator=(const BenchDirectory&) = delete;
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

// Members are destroyed from the last: workers, client, the store itself. Whatever ends a run, an
// error or a signal, thus removes what the run has made.
class BenchRig {
public:
    static constexpr const char* kQueue = "bench";
    static constexpr int kFillBatch = 1'000;  // tasks per submit
    static constexpr int kWholeRun = 3'600;   // seconds that a run may take unless told

    // `bound`: seconds after which it gives up.
    BenchRig(Invocation& invocation, const BenchOptions& options, const char* kind, int bound);
    ~BenchRig();
    BenchRig(const BenchRig&) = delete;
    BenchRig& operator=(const BenchRig&) = delete;

    // All of it away, so that a failure to remove the store is told.
    void Finish();
    // An empty store instead of this one.
    void Renew();

    Invocation& invocation() { return invocation_; }
    const BenchOptions& options() const { return options_; }
    const std::string& url() const { return url_; }
    node::Client& client() { return *client_; }
    node::StoreMeter& meter() { return *meter_; }
    const StopOnSignal& signals() const { return signals_; }

    // Throws when a signal came, a worker has died, or the time is over.
    void Check();

    // ---- tasks
    std::vector<model::NewTask> Requests(const char* type, int count) const;
    // Submits so many in large batches from one thread, with progress.
    std::vector<TaskId> Fill(const std::vector<model::NewTask>& batch, int count, const char* what);
    double fill_rate() const { return fill_rate_; }  // tasks per second, of the last one
    std::int64_t Count(std::vector<model::State> states);
    std::int64_t Unfinished() { return Count({model::State::kOpen, model::State::kInProgress}); }
    void SetPaused(bool paused);

    // ---- a measured part: begins with fresh connections and workers, and ends with them
    void StartWorkers();
    void BeginMeasured();
    BenchFacts EndMeasured(std::int64_t tasks);
    // Until so many handlers have begun since BeginMeasured(). Does not ask the store.
    void AwaitHandled(std::int64_t count, const char* what);
    std::int64_t Handled() const;
    // Until the store says that nothing waits or runs.
    void AwaitAllDone();
    // The same by what is complete, where walking what was unfinished would take too long. Answers
    // how many are, which may be more.
    std::int64_t AwaitComplete(std::int64_t count);
    // Until the store says that all of these are over.
    void AwaitFinished(const std::vector<TaskId>& tasks);

    void CloseClient();
    void OpenClient();
    // With connections whose past is accounted for: before a measured part.
    void Reconnect();

    // ---- the answer
    // Sequential small commits: what this store on this disk can do at the most, one by one.
    double Canary();
    base::OrderedJson Header(int tasks);
    void AddPrefetch(base::OrderedJson& result) const;
    // With both canaries and the facts.
    void Conclude(base::OrderedJson& result, const BenchFacts& facts);
    // `parts`: rows for people, which the object holds in its own way.
    void Print(const base::OrderedJson& result, const Listing* parts = nullptr);

private:
    struct Stall;
    void MakeStore();
    void TellOfOthers();
    void RefuseUsedStore();
    void TakeBackTasks();
    void AwaitSettled();
    void LearnTypes();
    void StopWorkers();
    std::vector<pid_t> Workers() const;
    std::optional<int> Prefetch() const;
    std::vector<std::string> WorkerWords() const;

    StopOnSignal signals_;
    Invocation& invocation_;
    const BenchOptions& options_;
    const char* kind_;
    const int bound_;
    const base::Instant until_;
    std::string name_;  // of all our connections
    std::string url_;
    BenchDirectory directory_;
    std::optional<node::ScratchStore> scratch_;
    std::optional<node::StoreMeter> meter_;
    std::optional<FactsTaker> taker_;
    std::optional<node::Client> client_;
    bool types_known_ = false;  // to the store
    std::optional<WorkerProcesses> workers_;
    std::uint64_t handled_before_ = 0;
    double canary_ = 0;
    double fill_rate_ = 0;
    bool finished_ = false;
};

double SecondsBetween(base::Instant from, base::Instant to);

// p50_ms, p95_ms, p99_ms, max_ms
void AddPercentiles(base::OrderedJson& result, std::vector<double> milliseconds);

}  // namespace stint::cli
