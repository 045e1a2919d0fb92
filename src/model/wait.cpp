#include "model/wait.h"

#include <algorithm>

#include "base/check.h"

namespace stint::model {

std::string_view StageName(Stage stage) {
    switch (stage) {
        case Stage::kStart:
            return "start";
        case Stage::kResume:
            return "resume";
        case Stage::kError:
            return "error";
    }
    base::CheckFailed(__FILE__, __LINE__, "StageName", "not a stage");
}

bool HasFailed(const WaitMember& member) {
    return member.ended == State::kDead || member.ended == State::kCancelled;
}

WaitTally TallyOf(const std::vector<WaitMember>& members) {
    auto pending = [](const WaitMember& member) { return !member.ended; };
    return {
        .total = static_cast<int>(members.size()),
        .pending = static_cast<int>(std::ranges::count_if(members, pending)),
        .failed = static_cast<int>(std::ranges::count_if(members, HasFailed)),
    };
}

WaitVerdict Judge(const WaitOn& wait, const WaitTally& tally) {
    const bool success = tally.pending + tally.failed < tally.total;
    if (wait.any && success) return WaitVerdict::kSucceeded;
    if (wait.any && !wait.need_success && tally.failed > 0) return WaitVerdict::kFailed;
    if (tally.failed > 0 && !wait.any && wait.on_failure != OnFailure::kWaitForAll)
        return WaitVerdict::kFailed;
    if (tally.pending > 0) return WaitVerdict::kGoesOn;
    return tally.failed > 0 ? WaitVerdict::kFailed : WaitVerdict::kSucceeded;
}

WaitEnd EndOf(const WaitOn& wait, WaitVerdict verdict, bool started) {
    CHECK(verdict != WaitVerdict::kGoesOn);
    const bool failed = verdict == WaitVerdict::kFailed;
    WaitEnd end;
    if (started) end.stage = failed ? Stage::kError : Stage::kResume;
    if (!started && failed && wait.need_success) end.event = Event::kCancel;
    end.cancel_rest = failed && wait.on_failure == OnFailure::kCancelRest;
    return end;
}

}  // namespace stint::model
