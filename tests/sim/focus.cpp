#include "sim/focus.h"

#include <array>
#include <vector>

#include "base/check.h"

namespace stint::sim {

namespace {

using base::Bug;

constexpr double kFocusedShare = 0.25;

struct Subject {
    std::string_view name;
    Mix mix;
    std::vector<Fault> faults;
};

const std::array<Subject, kFocusCount>& Subjects() {
    static const std::array<Subject, kFocusCount> subjects = {{
        {"drawn", {}, {}},
        {"calls", {.random_calls = true}, {Fault::kUnknownDone}},
        {"leases",
         {.structured = true},
         {Fault::kCrash, Fault::kPause, Fault::kSlow, Fault::kDrain}},
        {"answers",
         {.structured = true},
         {Fault::kUnknownDone, Fault::kUnknownNotDone, Fault::kStoreDown, Fault::kCrash}},
        {"links", {.structured = true}, {Fault::kBadLink}},
        {"families", {.structured = true}, {Fault::kCrash, Fault::kUnknownDone}},
        {"events", {.events = true}, {Fault::kUnknownDone, Fault::kCrash, Fault::kSlow}},
        {"flows",
         {.flows = true},
         {Fault::kPause, Fault::kSlow, Fault::kCrash, Fault::kUnknownDone}},
        {"schedules",
         {.schedules = true},
         {Fault::kSlow, Fault::kPause, Fault::kUnknownDone, Fault::kCrash}},
        {"steps", {.steps = true}, {Fault::kUnknownDone, Fault::kCrash}},
        {"resources", {.resources = true}, {Fault::kCrash, Fault::kPause}},
    }};
    return subjects;
}

const Subject& SubjectOf(Focus focus) {
    return Subjects().at(static_cast<std::size_t>(focus));
}

}  // namespace

std::string_view FocusName(Focus focus) {
    return SubjectOf(focus).name;
}

std::optional<Focus> FocusNamed(std::string_view name) {
    for (std::size_t i = 0; i < Subjects().size(); ++i) {
        if (Subjects()[i].name == name) return static_cast<Focus>(i);
    }
    return std::nullopt;
}

Mix DrawMix(World& world, bool exclusive) {
    Mix mix;
    // Each of the two that use what every task has, or both at once.
    auto draw = exclusive ? 2 : world.random().Below(4);  // the second opens sessions of its own
    mix.structured = draw != 0;
    mix.random_calls = draw <= 1;
    // Beside them nothing, one of the others, or some.
    enum Beside : std::uint64_t { kEvents = 1, kFlows, kSchedules, kResources, kSome, kChoices };
    auto beside = world.random().Below(kChoices);
    auto chosen = [&](Beside which) {
        return beside == which || (beside == kSome && world.Chance(0.5));
    };
    mix.events = chosen(kEvents);
    mix.flows = chosen(kFlows);
    mix.schedules = mix.steps = chosen(kSchedules);
    mix.resources = chosen(kResources);
    return mix;
}

Focus DrawFocus(World& world) {
    if (!world.Chance(kFocusedShare)) return Focus::kDrawn;
    return static_cast<Focus>(1 + world.random().Below(kFocusCount - 1));
}

Mix MixOf(Focus focus) {
    return SubjectOf(focus).mix;
}

std::span<const Fault> FaultsOf(Focus focus) {
    return SubjectOf(focus).faults;
}

Focus FocusOf(Bug bug) {
    switch (bug) {
        case Bug::kNone:
        case Bug::kIdempotencyWithoutHash:
        case Bug::kUniqueKeyNotReleased:
        case Bug::kAuditOutsideTransaction:
        case Bug::kClaimIgnoresDue:
        case Bug::kWakeOnly:
            return Focus::kDrawn;
        case Bug::kWaitMissesCancel:
        case Bug::kWaitCountsTwice:
        case Bug::kWaitLosesMember:
        case Bug::kBlockBurnsAttempt:
        case Bug::kCancelStopsAtRoot:
            return Focus::kFamilies;
        case Bug::kNoFence:
        case Bug::kOwnerFence:
        case Bug::kClaimIgnoresSession:
        case Bug::kCompletionUnfenced:
        case Bug::kResultsUnfenced:
            return Focus::kCalls;
        case Bug::kUnguardedReclaim:
        case Bug::kCrashNotCounted:
        case Bug::kDrainBurnsAttempt:
        case Bug::kCancelForgotten:
        case Bug::kReclaimLosesTask:
            return Focus::kLeases;
        case Bug::kUnknownIsFailure:
        case Bug::kUnknownResubmitted:
        case Bug::kSpoolUnfenced:
            return Focus::kAnswers;
        case Bug::kSelfStopFromReply:
            return Focus::kLinks;
        case Bug::kFireWithoutMark:
        case Bug::kMarkDeletedEarly:
        case Bug::kFoldFiresTwice:
            return Focus::kSchedules;
        case Bug::kFireWithoutRecord:
        case Bug::kJoinWithoutGeneration:
        case Bug::kJoinMaskOverwritten:
        case Bug::kEventIdIgnored:
            return Focus::kEvents;
        case Bug::kFlowStepUnfenced:
        case Bug::kFlowSignalLost:
        case Bug::kFlowStepAgain:
        case Bug::kFlowSignalTwice:
            return Focus::kFlows;
        case Bug::kClaimOverAdmits:
        case Bug::kSlotLeakedOnReclaim:
        case Bug::kSeatGivenBackEarly:
        case Bug::kRunsWithoutSeat:
        case Bug::kHalfOpenLetsAllThrough:
        case Bug::kBreakerBurnsAttempt:
        case Bug::kOrderKeyOvertaken:
        case Bug::kLabelsIgnored:
        case Bug::kRateNotCounted:
            return Focus::kResources;
        case Bug::kStepEndsEarly:
        case Bug::kStepSkipped:
            return Focus::kSteps;
    }
    base::CheckFailed(__FILE__, __LINE__, "FocusOf", "not a bug");
}

}  // namespace stint::sim
