// stint demo schedule: several workers fire one schedule, without a leader. Each instant becomes
// one task, though a worker is killed meanwhile.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "cli/demo.h"
#include "cli/demo_verdict.h"
#include "node/open_store.h"

namespace stint::cli {

namespace {

constexpr Duration kEvery = std::chrono::seconds{1};

struct ScheduleOptions {
    int runs = 8;
    int workers = 3;
};

class ScheduleDemo {
public:
    ScheduleDemo(Invocation& invocation, const ScheduleOptions& options)
        : invocation_(invocation), options_(options), stage_(invocation, 4) {}

    int Run() {
        invocation_.Say(
            "demo: a schedule every second, {} worker processes that all may fire it, one is "
            "killed; store {}",
            options_.workers,
            node::WithoutSecrets(invocation_.store_url())
        );
        stage_.StartWorkers(options_.workers);
        Put();
        auto total = static_cast<std::size_t>(options_.runs);
        stage_.Watch(total, [&](std::size_t done, const auto&, ProgressBar& bar) {
            if (killed_ || done < total / 2) return;
            killed_ = true;
            bar.Say("!! killing a worker (SIGKILL)");
            stage_.workers().KillAndRestart(0);
        });
        std::vector<model::ScheduleRun> runs = StopFiring();
        // What was fired until then is finished, too.
        auto fired = std::ranges::count_if(runs, [](const auto& run) { return run.task.valid(); });
        stage_.Watch(static_cast<std::size_t>(fired));
        stage_.workers().Stop();
        int code = Report(runs);
        Need(stage_.client().Schedules([&](node::ScheduleDesk& desk) {
            return desk.Remove(Tenant(), stage_.queue());
        }));
        return code;
    }

private:
    TenantId Tenant() const { return TenantId(invocation_.config().Number("tenant")); }

    void Put() {
        model::ScheduleSpec spec;
        spec.tenant = Tenant();
        spec.name = stage_.queue();
        spec.timing.kind = model::TimingSpec::Kind::kEvery;
        spec.timing.every = kEvery;
        spec.misfire.kind = model::MisfirePolicy::Kind::kAll;
        spec.task = stage_.Task("demo.sleep", R"({"ms":20})");
        spec.task.tenant = spec.tenant;
        Need(stage_.client().Schedules([&](node::ScheduleDesk& desk) {
            return desk.Put(spec, std::nullopt, invocation_.actor());
        }));
    }

    std::vector<model::ScheduleRun> StopFiring() {
        return Need(stage_.client().Schedules(
            [&](node::ScheduleDesk& desk) -> Result<std::vector<model::ScheduleRun>> {
                auto paused = desk.SetPaused(Tenant(), stage_.queue(), true, invocation_.actor());
                if (!paused) return paused.error();
                node::RunsRequest request;
                request.limit = model::limits::kListPage;
                return desk.Runs(Tenant(), stage_.queue(), request);
            }
        ));
    }

    int Report(const std::vector<model::ScheduleRun>& runs) {
        ScheduleVerdict verdict;
        verdict.Add(runs, kEvery);
        verdict.wanted = static_cast<std::size_t>(options_.runs);
        verdict.killed = killed_;
        for (const auto& [state, count] : stage_.Counts()) verdict.submitted += count;
        std::set<TaskId> tasks;
        for (const model::ScheduleRun& run : runs) {
            if (run.task.valid()) tasks.insert(run.task);
        }
        verdict.tally = ReadTally(stage_.client(), {tasks.begin(), tasks.end()});
        std::size_t doubled =
            verdict.doubled + (verdict.submitted - std::min(verdict.submitted, verdict.tasks));
        base::OrderedJson json = {
            {"instants", verdict.instants},
            {"tasks", verdict.submitted},
            {"completed", verdict.tally.completed},
            {"missing", verdict.missing},
            {"doubled", doubled},
            {"lost", verdict.tally.lost},
            {"kills", killed_ ? 1 : 0}};
        std::string line = fmt::format(
            "instants {}   tasks {}   completed {}   missing {}   doubled {}   lost {}",
            verdict.instants,
            verdict.submitted,
            verdict.tally.completed,
            verdict.missing,
            doubled,
            verdict.tally.lost
        );
        WarnIfNotKilled(invocation_, killed_);
        return PrintVerdict(invocation_, stage_, line, std::move(json), verdict.good());
    }

    Invocation& invocation_;
    const ScheduleOptions& options_;
    DemoStage stage_;
    bool killed_ = false;
};

}  // namespace

void AddScheduleDemo(Program& program, CLI::App& group) {
    program.Command<ScheduleOptions>(
        group,
        "schedule",
        "Several workers, one schedule, no leader: one task per instant.",
        "stint demo schedule\nstint demo schedule --runs 30 --workers 5",
        [](Syntax& syntax, ScheduleOptions& options) {
            syntax.Number("--runs", options.runs, "N", "how many runs to wait for (8)");
            syntax.Number("--workers", options.workers, "N", "worker processes (3)");
        },
        [](Invocation& invocation, const ScheduleOptions& options) {
            CheckWithin("--runs", options.runs, 2, 50);
            CheckWithin("--workers", options.workers, 1, 16);
            return ScheduleDemo(invocation, options).Run();
        }
    );
}

}  // namespace stint::cli
