// What stands behind a stint::Flow: answers each step from the record, or has it done and recorded,
// or leaves the function because it has to wait.
#pragma once

#include <stint/flow.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/flow_replay.h"
#include "store/flows.h"

namespace stint::engine::flow {

// Leaves the function of a flow. It derives from nothing, so that only a catch (...) can keep it.
struct Leave {};

// Where steps are recorded. Every call may leave the flow instead of returning.
class Recorder {
public:
    virtual ~Recorder() = default;
    virtual Context* context() = 0;
    // The step as it stands in the record now. `child`: made with it.
    virtual model::FlowStep Record(
        const model::FlowStep& step,
        std::optional<Duration> length = {},
        std::optional<model::NewTask> child = {}
    ) = 0;
    virtual model::FlowStep AwaitSignal(
        const model::FlowStep& step, std::optional<Duration> patience
    ) = 0;
    virtual model::NewTask NewChild(
        std::string_view type,
        const TaskDefaults& defaults,
        std::string input,
        const SubmitOptions& options
    ) = 0;
    // Of the given ones those that are over.
    virtual std::vector<store::FinishedTask> Finished(std::span<const TaskId> tasks) = 0;
    virtual Time Now() = 0;
    // Different for each step, and not to be guessed.
    virtual std::string Secret(std::string_view step, int occurrence) = 0;
    virtual std::string IdempotencyKey(std::string_view step, int occurrence) = 0;
    // A local step is about to be done.
    virtual void BeforeRun(const model::FlowStep&) {}
    // Whether this failure of a local step is the last one: it is recorded. Otherwise the attempt
    // ends with it and is tried again.
    virtual bool IsFinal(const model::TaskError& error) = 0;
};

class Journal final : public detail::FlowBody {
public:
    Journal(Recorder& recorder, std::vector<model::FlowStep> steps)
        : recorder_(recorder), replay_(std::move(steps)) {}

    Context* context() override { return recorder_.context(); }
    detail::StartedStep Start(
        std::string_view name,
        std::string_view type,
        const TaskDefaults& defaults,
        std::string input,
        const SubmitOptions& options
    ) override;
    std::string Await(const detail::StartedStep& started) override;
    void AwaitAll(const std::vector<detail::StartedStep>& started) override;
    std::size_t AwaitAny(std::string_view name, const std::vector<detail::StartedStep>& started)
        override;
    void Sleep(std::string_view name, Duration duration) override;
    std::optional<std::string> AwaitSignal(std::string_view name, std::optional<Duration> timeout)
        override;
    std::string Run(std::string_view name, const std::function<std::string(const LocalStep&)>& work)
        override;
    Time Now(std::string_view name) override;
    std::uint64_t Random(std::string_view name) override;
    std::string NewId(std::string_view name) override;
    int Version(std::string_view name, int min, int max) override;
    void Retired(std::string_view name) override;

    // Ends the attempt so, unless it has been left already.
    [[noreturn]] void LeaveWith(Outcome<std::string> outcome);
    // The same with a failure that every other try would come to.
    [[noreturn]] void LeaveForGood(Failed failed);
    Failed ForGood(Failed failed) {
        for_good_ = true;
        return failed;
    }
    bool for_good() const { return for_good_; }
    // How the attempt ends if it was left; nothing: it was not.
    const std::optional<Outcome<std::string>>& left() const { return left_; }
    const std::string& left_at() const { return left_at_; }
    const model::FlowReplay& replay() const { return replay_; }

private:
    struct Asked {
        model::FlowStep step;  // as it would be recorded
        const model::FlowStep* recorded = nullptr;
    };
    Asked Ask(std::string_view name, model::StepKind kind, std::string about, std::string hash);
    bool IsToStop();
    // Nothing new is begun by one that is to stop.
    void LeaveIfToStop() {
        if (IsToStop()) LeaveWith(Snooze{Duration::zero()});
    }
    const model::FlowStep& Record(model::FlowStep step, std::string result);
    const model::FlowStep& Open(const detail::StartedStep& started);
    // Looks which of them are over, and records that.
    std::vector<const model::FlowStep*> Look(const std::vector<detail::StartedStep>& started);
    [[noreturn]] void Block(std::vector<TaskId> on, bool any);
    [[noreturn]] void Nap(std::optional<Time> until);
    static void ThrowIfFailed(const model::FlowStep& step);
    std::string Value(std::string_view name, const std::function<std::string(int)>& make);

    Recorder& recorder_;
    model::FlowReplay replay_;
    std::optional<Outcome<std::string>> left_;
    std::string left_at_;  // the step
    std::string now_in_;   // the local step that runs
    bool for_good_ = false;
};

// Calls the function and says how the attempt ends. Other exceptions pass.
Outcome<std::string> Play(
    Journal& journal, std::string_view input, const detail::ErasedFlow& function
);

}  // namespace stint::engine::flow
