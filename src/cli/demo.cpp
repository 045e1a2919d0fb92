// stint demo: what is promised, shown on the user's own store.
#include "cli/demo.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/random.h"
#include "cli/demo_workflow.h"
#include "model/time_text.h"
#include "node/open_store.h"

namespace stint::cli {

namespace {

constexpr Duration kGiveUp = std::chrono::seconds{60};
constexpr Duration kLookEvery = std::chrono::milliseconds{50};

const std::string& Shareable(const Invocation& invocation) {
    if (invocation.store_url() == "memory:") {
        throw CommandError(
            kUsage, "memory: cannot be shared by processes; name a file: --store sqlite:demo.db"
        );
    }
    return invocation.store_url();
}

}  // namespace

std::vector<std::string> DemoWorkerWords(
    const std::string& queue, int slots, const std::vector<std::string>& more
) {
    std::vector<std::string> words = {
        "--queues",
        queue,
        "--slots",
        std::to_string(slots),
        "--lease",
        "2s",
        "--sweep-every",
        "300ms",
        "--poll-max",
        "100ms",
        "--drain",
        "5s"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

void CheckWithin(const char* flag, int value, int least, int most) {
    if (value >= least && value <= most) return;
    throw CommandError(
        kUsage, fmt::format("{} is {}; it must be between {} and {}", flag, value, least, most)
    );
}

DemoStage::DemoStage(Invocation& invocation, int slots, const std::vector<std::string>& more)
    : invocation_(invocation),
      begun_(base::SystemClock().Now()),
      client_((Shareable(invocation), invocation.OpenStore())),
      queue_(fmt::format("demo-{:08x}", base::SystemRandom().Next() & 0xFFFFFFFF)),
      workers_(invocation.store_url(), DemoWorkerWords(queue_, slots, more)) {
}

model::NewTask DemoStage::Task(std::string type, std::string input) const {
    model::NewTask task;
    task.type = std::move(type);
    task.input = std::move(input);
    task.queue = queue_;
    task.tags = {"demo"};
    task.actor = invocation_.actor();
    return task;
}

std::vector<TaskId> DemoStage::Submit(const std::vector<model::NewTask>& tasks) {
    std::vector<TaskId> ids;
    ids.reserve(tasks.size());
    for (auto& reply : client_.Submit(tasks)) ids.push_back(Need(std::move(reply)).id);
    return ids;
}

void DemoStage::StartWorkers(int count) {
    workers_.Start(count);
    workers_.AwaitLive(client_, signals_);
}

std::map<model::State, std::size_t> DemoStage::Counts() {
    model::TaskFilter filter;
    filter.queues = {queue_};
    std::map<model::State, std::size_t> counts;
    for (const auto& [key, count] : client_.Counts(filter)) {
        counts[key.state] += static_cast<std::size_t>(count);
    }
    return counts;
}

bool DemoStage::Watch(std::size_t total, const Look& each) {
    ProgressBar bar(invocation_.progress(), total, std::chrono::seconds{1});
    base::Instant limit = base::SystemClock().Now() + kGiveUp;
    while (true) {
        CheckSignals(signals_);
        auto counts = Counts();
        std::size_t done = counts[model::State::kComplete] + counts[model::State::kDead] +
                           counts[model::State::kCancelled];
        bar.Update(std::min(done, total));
        if (done >= total) break;
        if (base::SystemClock().Now() > limit) {
            bar.Say(fmt::format(
                "!! not finished after {}; the workers' log:\n{}",
                model::RoughDuration(kGiveUp),
                workers_.LogTail()
            ));
            return false;
        }
        if (each) each(done, counts, bar);
        workers_.CheckAlive();
        Pause(signals_, kLookEvery);
    }
    bar.Finish();
    return true;
}

Duration DemoStage::Took() const {
    return std::chrono::duration_cast<Duration>(base::SystemClock().Now() - begun_);
}

void HolderKill::Look(ProgressBar& bar, std::string_view holding) {
    if (hit_) return;
    node::Client& client = stage_.client();
    if (last_) {
        auto task = client.Get(last_->task);
        bool held =
            task && task->state == model::State::kInProgress && task->session == last_->session;
        hit_ = Crashed(last_->task);
        if (held || hit_) return;
        last_.reset();
    }
    node::ListRequest request;
    request.filter.queues = {stage_.queue()};
    request.filter.states = {model::State::kInProgress};
    model::TaskPage running = client.List(request);
    for (std::size_t i = 0; i < stage_.workers().size(); ++i) {
        std::optional<SessionId> session = SessionOf(stage_.workers().pid(i));
        auto task = std::ranges::find_if(running.tasks, [&](const model::TaskRecord& one) {
            return session && one.session == *session;
        });
        if (task == running.tasks.end()) continue;
        bar.Say(
            fmt::format("!! killing a worker (SIGKILL) {}; one is {}", holding, task->id.ToString())
        );
        stage_.workers().KillAndRestart(i);
        last_ = Kill{*session, task->id};
        ++kills_;
        return;
    }
}

bool HolderKill::Crashed(TaskId task) {
    auto attempts = stage_.client().Attempts(task);
    return std::ranges::any_of(attempts, [](const model::AttemptRecord& attempt) {
        return attempt.end == model::AttemptEnd::kCrashed;
    });
}

std::optional<SessionId> HolderKill::SessionOf(std::int64_t pid) {
    for (const model::SessionRecord& session : stage_.client().Sessions()) {
        if (session.pid == pid && session.state == model::SessionState::kLive) return session.id;
    }
    return std::nullopt;
}

void WarnIfNotKilled(const Invocation& invocation, bool killed) {
    if (killed) return;
    invocation.Warn(
        "it was over before a worker could be killed, so nothing was shown: run it "
        "again with more to do"
    );
}

void WarnIfNothingHit(const Invocation& invocation, bool killed, std::size_t recovered) {
    WarnIfNotKilled(invocation, killed);
    if (!killed || recovered > 0) return;
    invocation.Warn("the kill hit no running task, so nothing was shown; run it again");
}

int PrintVerdict(
    const Invocation& invocation,
    DemoStage& stage,
    const std::string& line,
    base::OrderedJson json,
    bool good
) {
    json["queue"] = stage.queue();
    json["took_ms"] = stage.Took().count();
    json["ok"] = good;
    if (invocation.out().format() == Format::kTable) {
        invocation.out().Line(line);
    } else {
        invocation.out().Print({}, json, stage.queue());
    }
    invocation.Suggest(
        "took {}; read from the store and its audit log. Look yourself: stint task list queue:{}",
        model::RoughDuration(stage.Took()),
        stage.queue()
    );
    return good ? kOk : kFailed;
}

void AddDemo(Program& program) {
    CLI::App& group = program.Group(
        program.root(), "demo", "Demonstrations, on your store: what is promised, and the counts."
    );
    AddCrashDemo(program, group);
    AddFanoutDemo(program, group);
    AddThrottleDemo(program, group);
    AddScheduleDemo(program, group);
    AddWorkflowDemo(program, group);
}

}  // namespace stint::cli
