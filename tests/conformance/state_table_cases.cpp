// The transition table, driven through the interface: a task is brought into each state, each event
// is tried on it, and what the store does must be what model::Next says.
#include "conformance/conformance.h"

namespace stint::conformance {
namespace {

using Kind = Settlement::Kind;

class StateTable : public Conformance {
protected:
    // The task, and the token of its last lease.
    struct Subject {
        TaskId task;
        LeaseToken token;
    };

    Subject Bring(State state, Event event) {
        NewTask ask{.id = store.ReserveIds(1), .retry = Fixed(50, 10h)};
        if (event == Event::kExpire) ask.start_by = store.Now() + 3h;
        if (event == Event::kClaim || event == Event::kExpire) ask.priority = 255;
        Make(ask);
        other_ = Make({.type = "other", .queue = "others"});
        Subject subject{ask.id, {}};
        if (event == Event::kQuarantine) {
            // One crash short of it.
            for (int crash = 1; crash < limits::kMaxCrashes; ++crash) {
                Settlement outcome = Outcome(ClaimOne(), Kind::kRetry);
                outcome.crashed = true;
                Settle(outcome);
            }
        }
        if (state == State::kOpen) {
            // After crashes it rests in ERROR; an operator opens it.
            if (StateOf(ask.id) == State::kError) Retry(ask.id);
            return subject;
        }
        Lease lease = ClaimOne();
        EXPECT_EQ(lease.task, ask.id);
        subject.token = lease.token;
        switch (state) {
            case State::kInProgress:
                break;
            case State::kBlocked:
                SettleWith(subject, Kind::kBlocked);
                break;
            case State::kBackground:
                SettleAs(lease, Kind::kBackground, 1h);
                break;
            case State::kComplete:
                SettleAs(lease, Kind::kComplete);
                break;
            case State::kError:
                SettleAs(lease, Kind::kRetry, 1h);
                break;
            case State::kCancelled:
                SettleAs(lease, Kind::kCancelled);
                break;
            case State::kDead:
                SettleAs(lease, Kind::kDead);
                break;
            default:
                ADD_FAILURE() << "cannot reach " << StateName(state);
        }
        EXPECT_EQ(StateOf(ask.id), state);
        return subject;
    }

    void SettleWith(const Subject& subject, Kind kind, bool crashed = false) {
        Lease lease{.task = subject.task, .token = subject.token};
        Settlement outcome = Outcome(lease, kind, 1h);
        outcome.crashed = crashed;
        if (kind == Kind::kBlocked) outcome.wait.on = {other_};
        Settle(outcome);
    }

    void Finish(const Subject& subject, bool success, bool retryable) {
        (void)store.FinishBackground(
            {.task = subject.task,
             .token = subject.token,
             .actor = "outside",
             .success = success,
             .output = success ? "1" : "",
             .error = Failure(retryable)}
        );
    }

    void Try(const Subject& subject, Event event) {
        switch (event) {
            case Event::kSubmit:
                Submit({.id = subject.task});
                break;
            case Event::kClaim:
                ClaimMany(1);
                break;
            case Event::kRetryDue:
                Advance(2h);
                ClaimMany(1);
                break;
            case Event::kComplete:
                SettleWith(subject, Kind::kComplete);
                Finish(subject, true, false);
                break;
            case Event::kBackground:
                SettleWith(subject, Kind::kBackground);
                break;
            case Event::kFailRetryable:
                SettleWith(subject, Kind::kRetry);
                Finish(subject, false, true);
                break;
            case Event::kFailFinal:
                SettleWith(subject, Kind::kDead);
                Finish(subject, false, false);
                Discard(subject.task);
                break;
            case Event::kSnooze:
                SettleWith(subject, Kind::kSnooze);
                break;
            case Event::kRelease:
                SettleWith(subject, Kind::kRelease);
                break;
            case Event::kReclaim:
                store.CloseSession(Worker());
                ReclaimAll();
                break;
            case Event::kQuarantine:
                SettleWith(subject, Kind::kRetry, true);
                break;
            case Event::kBackgroundTimeout:
                Advance(2h);
                ReclaimAll();
                break;
            case Event::kCancel:
                Cancel(subject.task);
                SettleWith(subject, Kind::kCancelled);
                break;
            case Event::kExpire:
                Advance(4h);
                Housekeep();
                break;
            case Event::kOperatorRetry:
                Retry(subject.task);
                break;
            case Event::kEdit:
                (void)store.Edit(subject.task, {.priority = 7}, "ann");
                break;
            case Event::kBlock:
                SettleWith(subject, Kind::kBlocked);
                break;
            case Event::kUnblock:
                Cancel(other_);
                break;
        }
    }

    // What the store recorded for the event, if it accepted it.
    std::optional<AuditEntry> Accepted(const Subject& subject, std::int64_t after, Event event) {
        for (const AuditEntry& entry : store.Audit({.task = subject.task, .after = after})) {
            if (entry.event == event) return entry;
        }
        return std::nullopt;
    }

    TaskId other_;  // what a blocked one waits for
};
INSTANTIATE_TEST_SUITE_P(Store, StateTable, testing::ValuesIn(Backends()), &BackendName);

TEST_P(StateTable, EveryPairIsAcceptedOrRefusedAsTheTableSays) {
    int accepted = 0;
    for (int s = 0; s < kStateCount; ++s) {
        auto state = static_cast<State>(s);
        for (int e = 0; e < kEventCount; ++e) {
            auto event = static_cast<Event>(e);
            // Only at its submit, see the waits.
            if (state == State::kOpen && event == Event::kBlock) continue;
            SCOPED_TRACE(std::string(StateName(state)) + " + " + std::string(EventName(event)));
            Subject subject = Bring(state, event);
            std::int64_t last = AuditOf(subject.task).back().seq;
            Try(subject, event);

            std::optional<State> to = Next(state, event);
            std::optional<AuditEntry> entry = Accepted(subject, last, event);
            ASSERT_EQ(entry.has_value(), to.has_value());
            if (to) {
                EXPECT_EQ(entry->from, state);
                EXPECT_EQ(entry->to, *to);
                ++accepted;
            }
            // Out of the way of the next pair.
            Cancel(subject.task);
            Cancel(other_);
            if (std::optional<TaskRecord> left = store.Get(subject.task);
                left && !IsTerminal(left->state)) {
                store.CloseSession(Worker());
                ReclaimAll();
            }
        }
    }
    // All of the table but the submit itself, and what a submit may do besides.
    EXPECT_EQ(accepted, static_cast<int>(Transitions().size()) - 2);
}

}  // namespace
}  // namespace stint::conformance
