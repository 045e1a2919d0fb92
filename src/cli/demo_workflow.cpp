// stint demo workflow: orders that wait for their parcels while a worker is killed.
#include "cli/demo_workflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>

#include "base/clock.h"
#include "base/json.h"
#include "base/random.h"
#include "cli/demo.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/workers.h"
#include "model/time_text.h"

namespace stint::cli {

namespace {

constexpr std::string_view kFlowName = "demo.order";
constexpr Task<stint::Json, stint::Json> kOrder{kFlowName};
constexpr Task<stint::Json, stint::Json> kSleep{"demo.sleep"};
constexpr Duration kGiveUp = std::chrono::seconds{90};
// Long enough that an order is found, and its worker killed, while the letter is written.
constexpr Duration kLetter = std::chrono::milliseconds{250};
// What must have been recorded of each order, in this order.
constexpr std::string_view kSteps[] = {
    "reserve", "charge", "shipped", "rest", "label", "label", "thank"};

void WriteLetter() {
    std::mutex mutex;
    std::condition_variable_any nobody;
    std::unique_lock lock(mutex);
    base::Clock& clock = base::SystemClock();
    base::Instant until = clock.Now() + kLetter;
    while (clock.Now() < until) clock.WaitUntil(lock, nobody, {}, until);
}

stint::Json Order(Flow& flow, const stint::Json& order) {
    base::Json in = base::ReadJson(order.text);
    SubmitOptions options;
    options.queue = in.value("queue", "default");
    stint::Json work{fmt::format(R"({{"ms":{}}})", in.value("ms", 50))};
    flow.Call("reserve", kSleep, work, options);
    flow.Call("charge", kSleep, work, options);
    auto parcel = flow.AwaitSignal<stint::Json>("shipped", std::chrono::hours{72});
    flow.Sleep("rest", std::chrono::milliseconds{300});
    auto one = flow.Start("label", kSleep, work, options);
    auto two = flow.Start("label", kSleep, work, options);
    flow.AwaitAll(one, two);
    flow.Run("thank", WriteLetter);
    return parcel.value_or(stint::Json{});
}

struct DemoOptions {
    int orders = 20;
    int workers = 2;
};

// Of all orders, as the store has it.
struct Verdict {
    std::size_t complete = 0;
    std::size_t steps = 0;
    std::size_t missing = 0;  // steps that are not recorded, or not where they belong
    std::size_t doubled = 0;  // tasks that were called a second time, signals taken twice
    std::size_t resumed = 0;  // orders whose worker died
};

class WorkflowDemo {
public:
    WorkflowDemo(Invocation& invocation, const DemoOptions& options)
        : invocation_(invocation),
          options_(options),
          client_(invocation.OpenStore()),
          queue_(fmt::format("demo-{:08x}", base::SystemRandom().Next() & 0xFFFFFFFF)),
          workers_(invocation.store_url(), DemoWorkerWords(queue_, 8)) {}

    int Run() {
        base::Instant begun = base::SystemClock().Now();
        invocation_.Say(
            "demo: {} orders that are reserved, charged, wait for their parcel, rest and are "
            "labelled; {} workers",
            options_.orders,
            options_.workers
        );
        Submit();
        workers_.Start(options_.workers);
        workers_.AwaitLive(client_, signals_);
        Watch();
        workers_.Stop();
        took_ = std::chrono::duration_cast<Duration>(base::SystemClock().Now() - begun);
        return Report(Judge());
    }

private:
    void Submit() {
        std::vector<model::NewTask> tasks;
        for (int i = 0; i < options_.orders; ++i) {
            model::NewTask task;
            task.type = kFlowName;
            task.input = fmt::format(R"({{"queue":"{}","ms":{}}})", queue_, 20 + 5 * (i % 10));
            task.queue = queue_;
            task.tags = {"demo", "workflow"};
            task.actor = invocation_.actor();
            tasks.push_back(std::move(task));
        }
        for (auto& reply : client_.Submit(tasks)) ids_.push_back(Need(std::move(reply)).id);
    }

    // The parcel service: each order is told once that it is on its way, some before they ask.
    void Ship(std::size_t count) {
        for (; shipped_ < std::min(count, ids_.size()); ++shipped_) {
            model::NewSignal signal;
            signal.task = ids_[shipped_];
            signal.name = "shipped";
            signal.payload = fmt::format("\"parcel {}\"", shipped_ + 1);
            signal.id = "parcel";
            signal.actor = invocation_.actor();
            Need(client_.Flows().Signal(signal));
        }
    }

    void Watch() {
        ProgressBar bar(invocation_.progress(), ids_.size(), std::chrono::seconds{1});
        base::Instant limit = base::SystemClock().Now() + kGiveUp;
        for (int turn = 0;; ++turn) {
            CheckSignals(signals_);
            std::size_t done = 0;
            for (TaskId id : ids_) {
                auto task = client_.Get(id);
                done += task && IsTerminal(task->state) ? 1 : 0;
            }
            bar.Update(done);
            if (done >= ids_.size()) break;
            if (base::SystemClock().Now() > limit) {
                bar.Say("!! not finished; the workers' log:\n" + workers_.LogTail());
                break;
            }
            // Some wait until one was hit: then there is one more to hit.
            std::size_t most = killed_ ? ids_.size() : std::max(ids_.size() * 3 / 4, done + 1);
            Ship(std::min(static_cast<std::size_t>(turn) * 2, most));
            if (!killed_) KillInTheMiddle(bar);
            workers_.CheckAlive();
            Pause(signals_, Duration{50});
        }
        bar.Finish();
    }

    // Kills the worker of an order that has recorded a step and is at another one, until one was
    // hit: what a worker has sent before its death may still end the order.
    void KillInTheMiddle(ProgressBar& bar) {
        if (kill_) {
            auto task = client_.Get(kill_->order);
            bool held =
                task && task->state == model::State::kInProgress && task->session == kill_->session;
            killed_ = Crashed(kill_->order);
            if (held || killed_) return;
            kill_.reset();
        }
        for (std::size_t i = 0; i < workers_.size(); ++i) {
            std::optional<SessionId> session = SessionOf(workers_.pid(i));
            std::optional<TaskId> order = session ? InTheMiddle(*session) : std::nullopt;
            if (!order) continue;
            bar.Say(fmt::format(
                "!! killing a worker (SIGKILL) in the middle of its orders; one is {}",
                order->value()
            ));
            workers_.KillAndRestart(i);
            kill_ = Kill{*session, *order};
            return;
        }
    }

    bool Crashed(TaskId order) {
        auto attempts = client_.Attempts(order);
        return std::ranges::any_of(attempts, [](const model::AttemptRecord& attempt) {
            return attempt.end == model::AttemptEnd::kCrashed;
        });
    }

    std::optional<SessionId> SessionOf(std::int64_t pid) {
        for (const model::SessionRecord& session : client_.Sessions()) {
            if (session.pid == pid && session.state == model::SessionState::kLive) {
                return session.id;
            }
        }
        return std::nullopt;
    }

    std::optional<TaskId> InTheMiddle(SessionId session) {
        node::ListRequest request;
        request.filter.queues = {queue_};
        request.filter.types = {std::string(kFlowName)};
        request.filter.states = {model::State::kInProgress};
        for (const model::TaskRecord& task : client_.List(request).tasks) {
            if (task.session != session) continue;
            auto flow = client_.Flows().Get(task.id);
            if (flow && !flow->history.steps.empty()) return task.id;
        }
        return std::nullopt;
    }

    Verdict Judge() {
        Verdict verdict;
        for (TaskId id : ids_) {
            auto flow = client_.Flows().Get(id);
            if (!flow) {
                verdict.missing += std::size(kSteps);
                continue;
            }
            verdict.complete += flow->view.task.state == model::State::kComplete ? 1 : 0;
            JudgeSteps(flow->history, verdict);
            verdict.resumed += Crashed(id) ? 1 : 0;
        }
        JudgeCalls(verdict);
        return verdict;
    }

    static void JudgeSteps(const model::FlowHistory& history, Verdict& verdict) {
        std::size_t at = 0;
        for (std::string_view name : kSteps) {
            bool there = at < history.steps.size() && history.steps[at].name == name;
            verdict.missing += there ? 0 : 1;
            ++at;
        }
        verdict.steps += history.steps.size();
        int taken = 0;
        for (const model::FlowSignal& signal : history.signals) taken += signal.step != 0 ? 1 : 0;
        verdict.doubled += taken > 1 ? 1 : 0;
    }

    // Of each order exactly the four tasks that it calls were made.
    void JudgeCalls(Verdict& verdict) {
        constexpr std::size_t kCalls = 4;
        model::TaskFilter filter;
        filter.queues = {queue_};
        filter.types = {"demo.sleep"};
        std::size_t made = 0;
        for (const auto& [key, count] : client_.Counts(filter)) {
            made += static_cast<std::size_t>(count);
        }
        std::size_t wanted = kCalls * ids_.size();
        verdict.doubled += made > wanted ? made - wanted : 0;
        verdict.missing += made < wanted ? wanted - made : 0;
    }

    int Report(const Verdict& verdict) {
        bool good = verdict.complete == ids_.size() && verdict.missing == 0 &&
                    verdict.doubled == 0 && killed_ && verdict.resumed > 0;
        base::OrderedJson json;
        json["orders"] = ids_.size();
        json["complete"] = verdict.complete;
        json["steps"] = verdict.steps;
        json["missing"] = verdict.missing;
        json["doubled"] = verdict.doubled;
        json["killed"] = killed_;
        json["resumed"] = verdict.resumed;
        json["queue"] = queue_;
        json["took_ms"] = took_.count();
        json["ok"] = good;
        if (invocation_.out().format() == Format::kTable) {
            invocation_.out().Line(fmt::format(
                "orders {}   complete {}   steps recorded {}   missing {}   doubled {}   resumed "
                "after the kill {}",
                ids_.size(),
                verdict.complete,
                verdict.steps,
                verdict.missing,
                verdict.doubled,
                verdict.resumed
            ));
        } else {
            invocation_.out().Print({}, json, queue_);
        }
        if (verdict.resumed == 0) {
            invocation_.Say("!! no order was hit by a kill: that they are resumed was not shown");
        }
        invocation_.Suggest(
            "took {}; read from the store. Look yourself: stint flow show {}",
            model::RoughDuration(took_),
            ids_.front().value()
        );
        return good ? kOk : kFailed;
    }

    StopOnSignal signals_;  // first: every thread made later leaves the signals to it
    Invocation& invocation_;
    const DemoOptions& options_;
    node::Client client_;
    std::string queue_;
    WorkerProcesses workers_;
    std::vector<TaskId> ids_;
    std::size_t shipped_ = 0;
    struct Kill {
        SessionId session;
        TaskId order;
    };
    std::optional<Kill> kill_;  // the last one
    bool killed_ = false;       // it hit
    Duration took_{};
};

int RunWorkflowDemo(Invocation& invocation, const DemoOptions& options) {
    auto within = [](const char* name, int value, int least, int most) {
        if (value >= least && value <= most) return;
        throw CommandError(
            kUsage, fmt::format("{} is {}; it must be between {} and {}", name, value, least, most)
        );
    };
    within("--orders", options.orders, 4, 1000);
    within("--workers", options.workers, 1, 16);
    if (invocation.store_url() == "memory:") {
        throw CommandError(
            kUsage, "memory: cannot be shared by processes; name a file: --store sqlite:demo.db"
        );
    }
    WorkflowDemo demo(invocation, options);
    return demo.Run();
}

}  // namespace

void HandleDemoOrders(Engine& engine) {
    engine.Handle(kOrder, Order);
}

void AddWorkflowDemo(Program& program, CLI::App& group) {
    program.Command<DemoOptions>(
        group,
        "workflow",
        "Kills a worker while orders wait, sleep and call; counts what the store has recorded.",
        "stint demo workflow\nstint demo workflow --orders 100 --store "
        "postgres://user@host/database",
        [](Syntax& syntax, DemoOptions& options) {
            syntax.Number("--orders", options.orders, "N", "how many orders (20)");
            syntax.Number("--workers", options.workers, "N", "worker processes (2)");
        },
        RunWorkflowDemo
    );
}

}  // namespace stint::cli
