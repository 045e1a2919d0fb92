// stint demo throttle: many workers with many slots, one resource with few units. From the audit
// log: never more holders than units, and never fewer for long.
#include <fmt/format.h>

#include "cli/demo.h"
#include "cli/demo_verdict.h"
#include "node/open_store.h"
#include "node/resource_client.h"

namespace stint::cli {

namespace {

constexpr std::size_t kKillAtPercent = 35;

struct ThrottleOptions {
    int tasks = 120;
    int capacity = 3;
    int workers = 3;
    int slots = 8;
};

class ThrottleDemo {
public:
    ThrottleDemo(Invocation& invocation, const ThrottleOptions& options)
        : invocation_(invocation),
          options_(options),
          // What is claimed ahead has no units yet; here everything that was claimed shall count.
          stage_(invocation, options.slots, {"--prefetch", "0"}) {}

    int Run() {
        invocation_.Say(
            "demo: {} tasks of {} ms that need a resource of {} units; {} worker processes with {} "
            "slots each, one is killed; store {}",
            options_.tasks,
            length_.count(),
            options_.capacity,
            options_.workers,
            options_.slots,
            node::WithoutSecrets(invocation_.store_url())
        );
        const std::string& resource = stage_.queue();  // a name of its own, like the queue
        Need(stage_.client().Resources().Change(
            {.name = resource, .capacity = options_.capacity}, invocation_.actor()
        ));
        std::vector<model::NewTask> tasks(
            static_cast<std::size_t>(options_.tasks),
            stage_.Task("demo.sleep", fmt::format(R"({{"ms":{}}})", length_.count()))
        );
        for (model::NewTask& task : tasks) task.needs = model::Needs{{resource, 1}};
        ids_ = stage_.Submit(tasks);
        stage_.StartWorkers(options_.workers);
        stage_.Watch(ids_.size(), [&](std::size_t done, const auto& counts, ProgressBar& bar) {
            auto running = counts.find(model::State::kInProgress);
            if (running == counts.end() || running->second == 0 || !IsTimeToKill(done)) return;
            kill_.Look(bar, "whose tasks hold the resource");
        });
        stage_.workers().Stop();
        int code = Report();
        stage_.client().Resources().Remove(resource, invocation_.actor());
        return code;
    }

private:
    std::size_t Could() const {
        return CouldHold(options_.capacity, options_.workers, options_.slots, options_.tasks);
    }

    // Few tasks are over at once: then it is now or never.
    bool IsTimeToKill(std::size_t done) const {
        return Could() >= ids_.size() || done * 100 >= kKillAtPercent * ids_.size();
    }

    int Report() {
        ThrottleVerdict verdict;
        verdict.tally = ReadTally(stage_.client(), ids_);
        Holders holders;
        for (TaskId id : ids_) holders.Add(stage_.client().AuditOf(id));
        verdict.most = holders.Most();
        verdict.could = Could();
        verdict.killed = kill_.kills() > 0;
        for (const node::CheckFinding& finding : stage_.client().Check()) {
            if (finding.ok) continue;
            verdict.broken += (verdict.broken.empty() ? "" : "; ") + finding.what;
        }
        const Tally& tally = verdict.tally;
        base::OrderedJson json = tally.ToJson();
        json["capacity"] = options_.capacity;
        json["most_holders"] = verdict.most;
        json["kills"] = kill_.kills();
        json["check"] = verdict.broken.empty() ? "ok" : verdict.broken;
        std::string line = fmt::format(
            "tasks {}   completed {}   recovered {}   lost {}   units {}   holders at most {}",
            tally.asked,
            tally.completed,
            tally.recovered,
            tally.lost,
            options_.capacity,
            verdict.most
        );
        if (!verdict.broken.empty()) {
            invocation_.Warn("the store's own check failed: " + verdict.broken);
        }
        WarnIfNothingHit(invocation_, verdict.killed, tally.recovered);
        return PrintVerdict(invocation_, stage_, line, std::move(json), verdict.good());
    }

    Invocation& invocation_;
    const ThrottleOptions& options_;
    DemoStage stage_;
    const Duration length_ = LengthOfEach(
        static_cast<std::size_t>(options_.tasks), Could(), std::chrono::milliseconds{50}
    );
    std::vector<TaskId> ids_;
    HolderKill kill_{stage_};
};

}  // namespace

void AddThrottleDemo(Program& program, CLI::App& group) {
    program.Command<ThrottleOptions>(
        group,
        "throttle",
        "Many slots, few units of a resource: how many held it at once, at most.",
        "stint demo throttle\nstint demo throttle --capacity 1 --workers 4",
        [](Syntax& syntax, ThrottleOptions& options) {
            syntax.Number("--tasks", options.tasks, "N", "how many tasks (120)");
            syntax.Number("--capacity", options.capacity, "N", "units of the resource (3)");
            syntax.Number("--workers", options.workers, "N", "worker processes (3)");
            syntax.Number("--slots", options.slots, "N", "tasks at once in each worker (8)");
        },
        [](Invocation& invocation, const ThrottleOptions& options) {
            CheckWithin("--tasks", options.tasks, 10, model::limits::kSubmitBatch);
            CheckWithin("--capacity", options.capacity, 1, 1000);
            CheckWithin("--workers", options.workers, 1, 16);
            CheckWithin("--slots", options.slots, 1, 256);
            return ThrottleDemo(invocation, options).Run();
        }
    );
}

}  // namespace stint::cli
