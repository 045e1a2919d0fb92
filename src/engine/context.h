// The Context that handlers see.
#pragma once

#include <stint/context.h>

#include <string>

#include "engine/attempts.h"
#include "engine/findings.h"
#include "engine/outcome.h"
#include "engine/require.h"
#include "engine/subtasks.h"

namespace stint::engine {

// Holds nothing but the attempt, so a handler left behind can go on using it.
class AttemptContext final : public Context {
public:
    explicit AttemptContext(AttemptPtr attempt)
        : attempt_(std::move(attempt)),
          subtasks_(attempt_->desk, attempt_->lease.task, attempt_->lease.tenant),
          findings_(attempt_->desk, attempt_->lease) {}

    TaskId id() const override { return attempt_->lease.task; }
    std::string_view type() const override { return attempt_->lease.type; }
    TenantId tenant() const override { return attempt_->lease.tenant; }
    int attempt() const override { return attempt_->lease.attempt; }
    std::string_view idempotency_key() const override { return attempt_->lease.idempotency_key; }
    std::int64_t fencing_number() const override { return attempt_->lease.claim_no; }
    std::string completion_token() const override { return attempt_->lease.token.ToString(); }
    std::stop_token stop() const override { return attempt_->stop_token(); }
    StopReason why() const override { return attempt_->why(); }
    void Progress(
        std::string_view step,
        std::int64_t done,
        std::optional<std::int64_t> total,
        std::string_view message
    ) override;
    void Warn(std::string_view note) override;
    void Require(std::string_view resource, int units) override {
        requirements_.Require(attempt_->lease.placement.needs, resource, units);
    }
    Stage stage() const override { return attempt_->lease.stage; }
    const std::vector<WaitedTask>& waited() override { return subtasks_.Waited(); }
    std::optional<SubtaskFailure> FailureOf(TaskId subtask) override {
        return subtasks_.Failure(subtask);
    }
    void Item(ItemResult item) override { findings_.Add(std::move(item)); }
    ItemCounts FlushItems() override { return findings_.Flush(); }
    Desk& desk() { return *attempt_->desk; }
    bool has_desk() const { return attempt_->desk != nullptr; }
    Findings& findings() { return findings_; }
    // For handlers of this project, which know a whole request.
    TaskId AddTask(model::NewTask task) { return subtasks_.Add(std::move(task)); }

    // Writes the items that are left; then, of an attempt that would complete, they have a say.
    void HearItems(AttemptResult& result);

    const store::Lease& lease() const { return attempt_->lease; }
    void Record(Evidence evidence) { evidence_ = std::move(evidence); }
    void FailForGood() { for_good_ = true; }

    // What the handler said besides its outcome.
    void Into(AttemptResult& result) &&;

private:
    TaskId AddSubtask(
        std::string_view type,
        const TaskDefaults& defaults,
        std::string input,
        const SubmitOptions& options
    ) override {
        return subtasks_.Add(type, defaults, std::move(input), options);
    }
    std::optional<std::string> OutputBytes(TaskId subtask) override {
        return subtasks_.Output(subtask);
    }
    std::vector<std::string> OutputsBytes(std::string_view type) override {
        return subtasks_.Outputs(type);
    }
    Result<void> CompleteInBytes(Transaction& transaction, std::string output) override;
    void SaveCheckpoint(std::string json) override { findings_.SaveCheckpoint(std::move(json)); }
    std::optional<std::string> LoadCheckpoint() override { return findings_.LoadCheckpoint(); }
    void JudgeItems(AttemptResult& result);

    const AttemptPtr attempt_;
    Subtasks subtasks_;
    Findings findings_;
    Requirements requirements_;
    std::string warning_;
    Evidence evidence_;
    bool completed_in_ = false;
    bool for_good_ = false;
};

// For handlers of this project that run commands: what the process left behind goes to the
// attempt's row. Contexts of other kinds ignore it.
void Record(Context& context, Evidence evidence);

}  // namespace stint::engine
