// stint demo crash: kills a worker in mid-work and shows that nothing is lost and nothing doubled.
#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/random.h"
#include "cli/demo_verdict.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/workers.h"
#include "model/time_text.h"
#include "node/open_store.h"

namespace stint::cli {

namespace {

constexpr Duration kGiveUp = std::chrono::seconds{60};
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
          client_(invocation.OpenStore()),
          // Its own queue each time: repeatable on one store, and nobody else's tasks are touched.
          queue_(fmt::format("demo-{:08x}", base::SystemRandom().Next() & 0xFFFFFFFF)),
          workers_(
              invocation.store_url(),
              {"--queues",
               queue_,
               "--slots",
               std::to_string(options.slots),
               "--lease",
               "2s",
               "--sweep-every",
               "300ms",
               "--poll-max",
               "100ms",
               "--drain",
               "5s"}
          ) {}

    int Run() {
        base::Instant begun = base::SystemClock().Now();
        invocation_.Say(
            "demo: {} tasks of 50–200 ms, {} worker process{}, store {}",
            options_.tasks,
            options_.workers,
            options_.workers == 1 ? "" : "es",
            node::WithoutSecrets(invocation_.store_url())
        );
        Submit();
        workers_.Start(options_.workers);
        workers_.AwaitLive(client_, signals_);
        Watch();
        workers_.Stop();
        took_ = std::chrono::duration_cast<Duration>(base::SystemClock().Now() - begun);
        return Report(ReadTally(client_, ids_));
    }

private:
    void Submit() {
        std::vector<model::NewTask> tasks;
        for (int i = 0; i < options_.tasks; ++i) {
            model::NewTask task;
            task.type = "demo.sleep";
            task.input = fmt::format(R"({{"ms":{}}})", 50 + random_.Below(151));
            task.queue = queue_;
            task.tags = {"demo", "crash"};
            task.actor = invocation_.actor();
            tasks.push_back(std::move(task));
        }
        for (auto& reply : client_.Submit(tasks)) ids_.push_back(Need(std::move(reply)).id);
    }

    std::map<model::State, std::size_t> Counts() {
        model::TaskFilter filter;
        filter.queues = {queue_};
        std::map<model::State, std::size_t> counts;
        for (const auto& [key, count] : client_.Counts(filter)) {
            counts[key.state] += static_cast<std::size_t>(count);
        }
        return counts;
    }

    void Watch() {
        ProgressBar bar(invocation_.progress(), ids_.size(), std::chrono::seconds{1});
        base::Instant limit = base::SystemClock().Now() + kGiveUp;
        while (true) {
            CheckSignals(signals_);
            auto counts = Counts();
            std::size_t done = counts[model::State::kComplete] + counts[model::State::kDead] +
                               counts[model::State::kCancelled];
            bar.Update(done);
            if (done >= ids_.size()) break;
            if (base::SystemClock().Now() > limit) {
                bar.Say(fmt::format(
                    "!! not finished after {}; the workers' log:\n{}",
                    model::RoughDuration(kGiveUp),
                    workers_.LogTail()
                ));
                break;
            }
            MaybeKill(done, counts[model::State::kInProgress], bar);
            workers_.CheckAlive();
            Pause(signals_, Duration{50});
        }
        bar.Finish();
    }

    // Only while something runs, or the kill would show nothing.
    void MaybeKill(std::size_t done, std::size_t running, ProgressBar& bar) {
        if (killed_ >= workers_.size() || running == 0) return;
        std::size_t at = kKillAtPercent + kKillEveryPercent * killed_;
        if (done * 100 < std::min<std::size_t>(at, 80) * ids_.size()) return;
        bar.Say(fmt::format(
            "!! killing {} (SIGKILL) in the middle of its tasks",
            workers_.size() == 1 ? "the worker" : fmt::format("worker {}", killed_ + 1)
        ));
        workers_.KillAndRestart(killed_);
        ++killed_;
    }

    int Report(const Tally& tally) {
        bool good = tally.good() && killed_ > 0 && tally.recovered > 0;
        base::OrderedJson json = tally.ToJson();
        json["kills"] = killed_;
        json["queue"] = queue_;
        json["took_ms"] = took_.count();
        json["ok"] = good;
        if (invocation_.out().format() == Format::kTable) {
            std::string line = fmt::format(
                "accepted {}   completed {}   recovered {}   lost {}   outcomes doubled {}",
                tally.accepted,
                tally.completed,
                tally.recovered,
                tally.lost,
                tally.doubled
            );
            if (tally.unfinished > 0) line += fmt::format("   unfinished {}", tally.unfinished);
            invocation_.out().Line(line);
        } else {
            invocation_.out().Print({}, json, queue_);
        }
        if (tally.good() && tally.recovered == 0) {
            invocation_.Warn("the kill hit no running task, so nothing was shown; run it again");
        }
        invocation_.Suggest(
            "took {}; read from the store and its audit log. Look yourself: stint task list "
            "queue:{}",
            model::RoughDuration(took_),
            queue_
        );
        return good ? kOk : kFailed;
    }

    StopOnSignal signals_;  // first: every thread made later leaves the signals to it
    Invocation& invocation_;
    const DemoOptions& options_;
    base::SeededRandom random_;
    node::Client client_;
    std::string queue_;
    WorkerProcesses workers_;
    std::vector<TaskId> ids_;
    std::size_t killed_ = 0;
    Duration took_{};
};

int RunCrashDemo(Invocation& invocation, const DemoOptions& options) {
    auto within = [](const char* name, int value, int least, int most) {
        if (value >= least && value <= most) return;
        throw CommandError(
            kUsage, fmt::format("{} is {}; it must be between {} and {}", name, value, least, most)
        );
    };
    within("--tasks", options.tasks, 10, model::limits::kSubmitBatch);
    within("--workers", options.workers, 1, 16);
    within("--slots", options.slots, 1, 256);
    if (invocation.store_url() == "memory:") {
        throw CommandError(
            kUsage, "memory: cannot be shared by processes; name a file: --store sqlite:demo.db"
        );
    }
    CrashDemo demo(invocation, options);
    return demo.Run();
}

}  // namespace

void AddDemo(Program& program) {
    CLI::App& group = program.Group(
        program.root(), "demo", "Demonstrations, on your store: a worker is killed in mid-work."
    );
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
