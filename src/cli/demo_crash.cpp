// stint demo crash: kills a worker in mid-work and shows that nothing is lost and nothing doubled.
#include <fmt/format.h>

#include <algorithm>

#include "base/random.h"
#include "cli/demo.h"
#include "cli/demo_verdict.h"
#include "node/open_store.h"

namespace stint::cli {

namespace {

// Killed when this share is done; workers beyond the first one a little later each.
constexpr int kKillAtPercent = 35, kKillEveryPercent = 15;

struct DemoOptions {
    int tasks = 300;
    int workers = 1;
    int slots = 8;
    std::optional<std::int64_t> seed;
};

class CrashDemo {
public:
    CrashDemo(Invocation& invocation, const DemoOptions& options)
        : invocation_(invocation),
          options_(options),
          random_(
              options.seed ? static_cast<std::uint64_t>(*options.seed) : base::SystemRandom().Next()
          ),
          stage_(invocation, options.slots) {}

    int Run() {
        invocation_.Say(
            "demo: {} tasks of 50–200 ms, {} worker process{}, store {}",
            options_.tasks,
            options_.workers,
            options_.workers == 1 ? "" : "es",
            node::WithoutSecrets(invocation_.store_url())
        );
        Submit();
        stage_.StartWorkers(options_.workers);
        stage_.Watch(ids_.size(), [this](std::size_t done, const auto& counts, ProgressBar& bar) {
            auto running = counts.find(model::State::kInProgress);
            if (running != counts.end()) MaybeKill(done, running->second, bar);
        });
        stage_.workers().Stop();
        return Report(ReadTally(stage_.client(), ids_));
    }

private:
    void Submit() {
        std::vector<model::NewTask> tasks;
        for (int i = 0; i < options_.tasks; ++i) {
            std::string input = fmt::format(R"({{"ms":{}}})", 50 + random_.Below(151));
            tasks.push_back(stage_.Task("demo.sleep", std::move(input)));
            tasks.back().tags.emplace_back("crash");
        }
        ids_ = stage_.Submit(tasks);
    }

    // Only while something runs, or the kill would show nothing.
    void MaybeKill(std::size_t done, std::size_t running, ProgressBar& bar) {
        WorkerProcesses& workers = stage_.workers();
        if (killed_ >= workers.size() || running == 0) return;
        std::size_t at = kKillAtPercent + kKillEveryPercent * killed_;
        if (done * 100 < std::min<std::size_t>(at, 80) * ids_.size()) return;
        bar.Say(fmt::format(
            "!! killing {} (SIGKILL) in the middle of its tasks",
            workers.size() == 1 ? "the worker" : fmt::format("worker {}", killed_ + 1)
        ));
        workers.KillAndRestart(killed_);
        ++killed_;
    }

    int Report(const Tally& tally) {
        bool good = tally.good() && killed_ > 0 && tally.recovered > 0;
        base::OrderedJson json = tally.ToJson();
        json["kills"] = killed_;
        std::string line = fmt::format(
            "accepted {}   completed {}   recovered {}   lost {}   outcomes doubled {}",
            tally.accepted,
            tally.completed,
            tally.recovered,
            tally.lost,
            tally.doubled
        );
        if (tally.unfinished > 0) line += fmt::format("   unfinished {}", tally.unfinished);
        if (tally.good() && tally.recovered == 0) {
            invocation_.Warn("the kill hit no running task, so nothing was shown; run it again");
        }
        return PrintVerdict(invocation_, stage_, line, std::move(json), good);
    }

    Invocation& invocation_;
    const DemoOptions& options_;
    base::SeededRandom random_;
    DemoStage stage_;
    std::vector<TaskId> ids_;
    std::size_t killed_ = 0;
};

int RunCrashDemo(Invocation& invocation, const DemoOptions& options) {
    CheckWithin("--tasks", options.tasks, 10, model::limits::kSubmitBatch);
    CheckWithin("--workers", options.workers, 1, 16);
    CheckWithin("--slots", options.slots, 1, 256);
    CrashDemo demo(invocation, options);
    return demo.Run();
}

}  // namespace

void AddCrashDemo(Program& program, CLI::App& group) {
    program.Command<DemoOptions>(
        group,
        "crash",
        "Kills a worker in mid-work, restarts it, and counts what the store says.",
        "stint demo crash\nstint demo crash --workers 3 --store postgres://user@host/database",
        [](Syntax& syntax, DemoOptions& options) {
            syntax.Number("--tasks", options.tasks, "N", "how many tasks (300)");
            syntax.Number(
                "--workers", options.workers, "N", "worker processes, each killed once (1)"
            );
            syntax.Number("--slots", options.slots, "N", "tasks at once in each worker (8)");
            syntax.Number("--seed", options.seed, "N", "seed of the tasks' lengths (random)");
        },
        RunCrashDemo
    );
}

}  // namespace stint::cli
