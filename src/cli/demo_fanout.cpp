// stint demo fanout: one task makes many, waits for them, and goes on once when all are done,
// though a worker is killed meanwhile.
#include <fmt/format.h>

#include "cli/demo.h"
#include "cli/demo_verdict.h"
#include "node/open_store.h"

namespace stint::cli {

namespace {

constexpr std::size_t kKillAtPercent = 35;

struct FanoutOptions {
    int children = 400;
    int workers = 2;
    int slots = 8;
};

class FanoutDemo {
public:
    FanoutDemo(Invocation& invocation, const FanoutOptions& options)
        : invocation_(invocation), options_(options), stage_(invocation, options.slots) {}

    int Run() {
        invocation_.Say(
            "demo: one task makes {} subtasks and waits for them; {} worker processes, one is "
            "killed; store {}",
            options_.children,
            options_.workers,
            node::WithoutSecrets(invocation_.store_url())
        );
        parent_ = stage_
                      .Submit({stage_.Task(
                          "demo.fanout",
                          fmt::format(
                              R"({{"children":{},"queue":"{}","ms":{}}})",
                              options_.children,
                              stage_.queue(),
                              LengthOfEach(
                                  static_cast<std::size_t>(options_.children),
                                  static_cast<std::size_t>(options_.workers * options_.slots),
                                  std::chrono::milliseconds{5}
                              )
                                  .count()
                          )
                      )})
                      .front();
        stage_.StartWorkers(options_.workers);
        std::size_t total = static_cast<std::size_t>(options_.children) + 1;
        stage_.Watch(total, [&](std::size_t done, const auto&, ProgressBar& bar) {
            if (done * 100 < kKillAtPercent * total) return;
            kill_.Look(bar, "in the middle of its tasks");
        });
        stage_.workers().Stop();
        return Report();
    }

private:
    std::vector<TaskId> Children() {
        node::ListRequest request;
        request.filter.parent = parent_;
        request.limit = model::limits::kListPage;
        std::vector<TaskId> children;
        while (true) {
            auto page = stage_.client().List(request);
            for (const model::TaskRecord& task : page.tasks) children.push_back(task.id);
            if (!page.next) return children;
            request.before = page.next;
        }
    }

    int Report() {
        FanoutVerdict verdict;
        verdict.children = ReadTally(stage_.client(), Children());
        verdict.parent = ReadTally(stage_.client(), {parent_});
        for (const model::AuditEntry& entry : stage_.client().AuditOf(parent_)) {
            if (entry.event == model::Event::kUnblock) ++verdict.resumed;
        }
        std::int64_t n = options_.children;
        auto record = stage_.client().Get(parent_);
        std::string promised = fmt::format(R"({{"children":{},"sum":{}}})", n, n * (n + 1) / 2);
        verdict.sum = record && record->output == promised;
        verdict.wanted = static_cast<std::size_t>(n);
        verdict.killed = kill_.kills() > 0;
        const Tally& children = verdict.children;
        std::size_t lost = children.lost + verdict.parent.lost;
        std::size_t doubled = children.doubled + verdict.parent.doubled;
        base::OrderedJson json = {
            {"children", children.asked},
            {"completed", children.completed},
            {"recovered", children.recovered},
            {"lost", lost},
            {"outcomes_doubled", doubled},
            {"parent_resumed", verdict.resumed},
            {"sum_right", verdict.sum},
            {"kills", kill_.kills()}};
        std::string line = fmt::format(
            "children {}   completed {}   recovered {}   lost {}   outcomes doubled {}   parent "
            "resumed {}   sum {}",
            children.asked,
            children.completed,
            children.recovered,
            lost,
            doubled,
            verdict.resumed,
            verdict.sum ? "right" : "WRONG"
        );
        WarnIfNothingHit(invocation_, verdict.killed, children.recovered);
        return PrintVerdict(invocation_, stage_, line, std::move(json), verdict.good());
    }

    Invocation& invocation_;
    const FanoutOptions& options_;
    DemoStage stage_;
    TaskId parent_;
    HolderKill kill_{stage_};
};

}  // namespace

void AddFanoutDemo(Program& program, CLI::App& group) {
    program.Command<FanoutOptions>(
        group,
        "fanout",
        "One task makes many, waits for all, and goes on once, though a worker dies.",
        "stint demo fanout\nstint demo fanout --children 5000 --workers 4",
        [](Syntax& syntax, FanoutOptions& options) {
            syntax.Number("--children", options.children, "N", "how many subtasks (400)");
            syntax.Number("--workers", options.workers, "N", "worker processes (2)");
            syntax.Number("--slots", options.slots, "N", "tasks at once in each worker (8)");
        },
        [](Invocation& invocation, const FanoutOptions& options) {
            CheckWithin("--children", options.children, 10, model::limits::kWaitMembers);
            CheckWithin("--workers", options.workers, 1, 16);
            CheckWithin("--slots", options.slots, 1, 256);
            return FanoutDemo(invocation, options).Run();
        }
    );
}

}  // namespace stint::cli
