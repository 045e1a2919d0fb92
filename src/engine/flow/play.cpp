// Flows of a worker: recorded by the store, with the token of the attempt.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/hash.h"
#include "base/test_point.h"
#include "engine/context.h"
#include "engine/flow/journal.h"
#include "engine/new_task.h"
#include "model/decide.h"
#include "model/limits.h"
#include "store/finished.h"

namespace stint::engine::flow {

namespace {

using Kind = store::FlowReply::Kind;

// Before the next try when the store gives no answer.
constexpr Duration kStorePause = std::chrono::seconds{1};
constexpr int kTries = 3;

class StoreRecorder final : public Recorder {
public:
    explicit StoreRecorder(AttemptContext& context) : context_(context) {}

    // Nothing: the task is no longer ours.
    std::optional<model::FlowHistory> Begin() {
        std::optional<model::FlowHistory> history;
        AskFlows([&](store::FlowStore& flows) {
            history = flows.Begin(context_.lease().task, context_.lease().token);
        });
        return history;
    }
    void Serve(Journal& journal) { journal_ = &journal; }

    Context* context() override { return &context_; }

    model::FlowStep Record(
        const model::FlowStep& step,
        std::optional<Duration> length,
        std::optional<model::NewTask> child
    ) override {
        base::TestPoint("flow.before_record");
        store::FlowWrite write = Write(step, length);
        write.child = std::move(child);
        store::FlowReply reply;
        AskFlows([&](store::FlowStore& flows) { reply = flows.Record(write); });
        base::TestPoint("flow.after_record");
        if (!reply.queue.empty()) context_.desk().Hint(reply.queue, reply.due_now);
        if (reply.kind == Kind::kRefused && write.child) return Refused(write, reply);
        return Taken(step, std::move(reply));
    }

    model::FlowStep AwaitSignal(const model::FlowStep& step, std::optional<Duration> patience)
        override {
        store::FlowReply reply;
        AskFlows([&](store::FlowStore& flows) { reply = flows.AwaitSignal(Write(step, patience)); }
        );
        base::TestPoint("flow.after_await");
        return Taken(step, std::move(reply));
    }

    model::NewTask NewChild(
        std::string_view type,
        const TaskDefaults& defaults,
        std::string input,
        const SubmitOptions& options
    ) override {
        auto refuse = [&](const std::string& why) {
            throw std::invalid_argument(fmt::format("call of {}: {}", type, why));
        };
        if (options.in != nullptr) {
            refuse("it is made together with its step, not in a transaction of its own");
        }
        if (options.tenant && *options.tenant != context_.tenant()) {
            refuse("it belongs to the flow's tenant; leave `tenant` out");
        }
        auto task = ToNewTask(type, &defaults, std::move(input), options, context_.tenant());
        if (!task) refuse(task.error().message);
        task->parent = context_.id();
        if (auto valid = Validate(*task); !valid) refuse(valid.error().message);
        Ask([&] { task->id = context_.desk().TakeId(); });
        return std::move(*task);
    }

    std::vector<store::FinishedTask> Finished(std::span<const TaskId> tasks) override {
        std::vector<store::FinishedTask> all;
        // In pieces: each of them may bring its output along.
        constexpr std::size_t kAtOnce = 100;
        for (std::size_t i = 0; i < tasks.size(); i += kAtOnce) {
            auto piece = tasks.subspan(i, std::min(kAtOnce, tasks.size() - i));
            Ask([&] {
                store::EachFinished(
                    piece,
                    [&](auto some) { return context_.desk().Finished(some); },
                    [&](store::FinishedTask one) { all.push_back(std::move(one)); }
                );
            });
        }
        return all;
    }

    Time Now() override {
        Time now{};
        Ask([&] { now = context_.desk().StoreTime(); });
        return now;
    }

    std::string Secret(std::string_view step, int occurrence) override {
        // The token is random, never used again, and cannot be found from this.
        return base::Sha256Hex(
            fmt::format("{}/{}/{}", context_.lease().token.ToString(), step, occurrence)
        );
    }
    std::string IdempotencyKey(std::string_view step, int occurrence) override {
        return fmt::format("{}/{}/{}", context_.idempotency_key(), step, occurrence);
    }
    bool IsFinal(const model::TaskError& error) override {
        const store::Lease& lease = context_.lease();
        return DecideFailure(lease.retry, std::max(1, lease.attempt), error, 0).to ==
               model::State::kDead;
    }

private:
    store::FlowWrite Write(const model::FlowStep& step, std::optional<Duration> length) const {
        store::FlowWrite write;
        write.task = context_.lease().task;
        write.token = context_.lease().token;
        write.step = step;
        write.length = length;
        return write;
    }

    // What is asked may be asked again: the same step is recorded once.
    template <class Question>
    void Ask(Question question) {
        for (int tries = 1;; ++tries) {
            try {
                return question();
            } catch (const Retryable&) {
                if (tries < kTries) continue;
            }
            LeaveWith(Snooze{kStorePause});
        }
    }

    void AskFlows(const std::function<void(store::FlowStore&)>& question) {
        Ask([&] { context_.desk().Flows(question); });
    }

    [[noreturn]] void LeaveWith(Outcome<std::string> outcome) {
        if (journal_ != nullptr) journal_->LeaveWith(std::move(outcome));
        throw Leave();
    }

    [[noreturn]] void LeaveForGood(Failed failed) {
        if (journal_ != nullptr) journal_->LeaveForGood(std::move(failed));
        throw Leave();
    }

    model::FlowStep Taken(const model::FlowStep& step, store::FlowReply reply) {
        switch (reply.kind) {
            case Kind::kRecorded:
                return std::move(reply.step);
            case Kind::kLost:
            case Kind::kStopping:
                // Whatever is reported now, the store knows better.
                LeaveWith(Snooze{Duration::zero()});
            case Kind::kFull:
                // Nobody's fault, and it passes.
                LeaveWith(Snooze{model::limits::kQueueFullPause});
            case Kind::kRefused:
                break;
        }
        LeaveForGood(
            {.message = fmt::format("step {}: {}", step.name, reply.message),
             .retryable = false,
             .klass = "flow_step_refused"}
        );
    }

    // The task was refused: that is the end of this step.
    model::FlowStep Refused(store::FlowWrite write, const store::FlowReply& refusal) {
        write.child.reset();
        write.step.state = model::StepState::kFailed;
        write.step.result = model::FailureText({refusal.message, "refused"});
        store::FlowReply reply;
        AskFlows([&](store::FlowStore& flows) { reply = flows.Record(write); });
        return Taken(write.step, std::move(reply));
    }

    AttemptContext& context_;
    Journal* journal_ = nullptr;
};

}  // namespace

}  // namespace stint::engine::flow

namespace stint::detail {

Outcome<std::string> PlayFlow(Context& context, std::string_view input, const ErasedFlow& flow) {
    using engine::flow::Journal;
    auto* attempt = dynamic_cast<engine::AttemptContext*>(&context);
    if (attempt == nullptr || !attempt->has_desk()) {
        return Failed{
            .message = "a flow runs in the worker itself; isolate the tasks that it calls",
            .retryable = false,
            .klass = "flow_isolated"};
    }
    engine::flow::StoreRecorder recorder(*attempt);
    std::optional<model::FlowHistory> history;
    try {
        history = recorder.Begin();
    } catch (const engine::flow::Leave&) {
        return Snooze{engine::flow::kStorePause};
    }
    // What is reported without the lease is refused anyway.
    if (!history) return Snooze{Duration::zero()};
    Journal journal(recorder, std::move(history->steps));
    recorder.Serve(journal);
    Outcome<std::string> outcome = engine::flow::Play(journal, input, flow);
    if (journal.for_good()) attempt->FailForGood();
    return outcome;
}

}  // namespace stint::detail
