#include "engine/context.h"

#include "base/json.h"
#include "base/result.h"
#include "engine/text.h"
#include "model/limits.h"

namespace stint {

std::string_view StopReasonName(StopReason reason) {
    switch (reason) {
        case StopReason::kNone:
            return "none";
        case StopReason::kCancelled:
            return "cancelled";
        case StopReason::kTimeout:
            return "timeout";
        case StopReason::kLeaseLost:
            return "lease_lost";
        case StopReason::kShutdown:
            return "shutdown";
    }
    return "none";
}

}  // namespace stint

namespace stint::engine {

namespace limits = model::limits;

void AttemptContext::Progress(
    std::string_view step,
    std::int64_t done,
    std::optional<std::int64_t> total,
    std::string_view message
) {
    attempt_->SetProgress(
        {CutText(step, limits::kProgressText), done, total, CutText(message, limits::kProgressText)}
    );
}

void AttemptContext::Warn(std::string_view note) {
    warning_ = note.empty() ? "warning" : CutText(note, limits::kReason);
}

Result<void> AttemptContext::CompleteInBytes(Transaction& transaction, std::string output) {
    if (output.size() > limits::kOutput) {
        return base::MakeError(
            Code::kLimit, "the output has {} bytes, the limit is {}", output.size(), limits::kOutput
        );
    }
    if (auto json = base::CheckJson(output, limits::kJsonDepth); !json) return json.error();
    if (findings_.unwritten()) {
        return base::MakeError(
            Code::kInvalid,
            "items are not written yet, and cannot be inside a transaction: call FlushItems() "
            "before it"
        );
    }
    if (auto counts = findings_.known()) {
        if (model::JudgeItems(*counts) == model::ItemVerdict::kFailed) {
            return base::MakeError(
                Code::kFailed,
                "{}: roll back, and let the handler fail",
                model::ItemVerdictText(*counts)
            );
        }
        if (counts->errors > 0 && warning_.empty()) warning_ = model::ItemVerdictText(*counts);
    }
    store::Settlement settlement;
    settlement.task = attempt_->lease.task;
    settlement.token = attempt_->lease.token;
    settlement.session = attempt_->session;
    settlement.kind = store::Settlement::Kind::kComplete;
    settlement.end = model::AttemptEnd::kComplete;
    settlement.output = std::move(output);
    settlement.warning = !warning_.empty();
    settlement.reason = warning_;
    store::SettleReply reply = transaction.implementation().Settle(settlement);
    switch (reply.kind) {
        case store::SettleReply::Kind::kAccepted:
            if (reply.state != model::State::kComplete) {
                return base::MakeError(
                    Code::kFailed,
                    "all items of task {} are in error: roll back, and let the handler fail",
                    id().value()
                );
            }
            completed_in_ = true;
            return {};
        case store::SettleReply::Kind::kLost:
            return base::MakeError(
                Code::kLeaseLost,
                "task {} is no longer held by this attempt: roll back",
                id().value()
            );
        case store::SettleReply::Kind::kBusy:
            return base::MakeError(Code::kUnavailable, "task {}: {}", id().value(), reply.message);
        case store::SettleReply::Kind::kRefused:
            break;
    }
    return base::MakeError(
        Code::kConflict,
        "task {} is {} and cannot complete",
        id().value(),
        model::StateName(reply.state)
    );
}

void AttemptContext::HearItems(AttemptResult& result) {
    if (completed_in_ || (!findings_.known() && !findings_.unwritten())) return;
    const auto* outcome = std::get_if<Outcome<std::string>>(&result.end);
    const bool complete = outcome != nullptr && std::holds_alternative<std::string>(*outcome);
    const bool failed = outcome == nullptr || std::holds_alternative<Failed>(*outcome) ||
                        std::holds_alternative<ResourceUnavailable>(*outcome);
    try {
        if (complete) {
            JudgeItems(result);
        } else if (findings_.unwritten()) {
            findings_.Flush();
        }
    } catch (...) {
        // What has failed already says more.
        if (!failed) result.end = Classify(std::current_exception());
    }
}

void AttemptContext::JudgeItems(AttemptResult& result) {
    ItemCounts counts = findings_.Flush();
    switch (model::JudgeItems(counts)) {
        case model::ItemVerdict::kFine:
            return;
        case model::ItemVerdict::kWarning:
            if (warning_.empty()) warning_ = model::ItemVerdictText(counts);
            return;
        case model::ItemVerdict::kFailed:
            result.end = model::TaskError{model::ItemVerdictText(counts), "items", {}, true};
            return;
    }
}

void AttemptContext::Into(AttemptResult& result) && {
    result.warning = std::move(warning_);
    result.completed_in = completed_in_;
    result.for_good = for_good_;
    if (result.required.empty()) result.required = requirements_.Take();
    if (result.subtasks.empty()) result.subtasks = subtasks_.Take();
    if (evidence_.exit_code || evidence_.exit_signal || !evidence_.stderr_tail.empty()) {
        result.evidence = std::move(evidence_);
    }
}

void Record(Context& context, Evidence evidence) {
    if (auto* ours = dynamic_cast<AttemptContext*>(&context)) ours->Record(std::move(evidence));
}

}  // namespace stint::engine
