// Recovering: leases of dead sessions, attempts over their time, background work nobody completed.
#include <algorithm>

#include "base/check.h"
#include "base/json.h"
#include "base/planted_bug.h"
#include "base/text.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/queries.h"

namespace stint::store::lite {

namespace {

constexpr std::string_view kSweeper = "sweeper";
constexpr std::size_t kUnreadable = 1000;

using base::Bug;
using base::Planted;

}  // namespace

ReclaimReply Ops::Reclaim(const ReclaimRequest& request) {
    ReclaimReply reply;
    for (const Doomed& doomed : FindDoomed(request, reply)) MoveDoomed(doomed, request, reply);
    return reply;
}

std::vector<Ops::Doomed> Ops::FindDoomed(const ReclaimRequest& request, ReclaimReply& reply) {
    auto limit = static_cast<std::size_t>(std::clamp(request.limit, 1, limits::kReclaimBatch));
    const auto most = static_cast<std::int64_t>(limit) + 1;  // one more tells that there is more
    std::vector<std::int64_t> sessions;
    {
        sqlite::Rows rows = Sql("session_lapsed").Query(Micros(now_), most);
        while (rows.Next()) {
            sessions.push_back(rows.Int(0));
            reply.expired.push_back(FromBytes<SessionId>(rows.Bytes(1)));
        }
    }
    for (std::int64_t no : sessions) {
        Sql("session_end").Run(static_cast<int>(SessionState::kExpired), Micros(now_), no);
    }
    for (SessionId id : reply.expired) sessions_.erase(id);

    // What dead sessions hold: also those of an earlier call that had reached its limit.
    sessions.clear();
    {
        sqlite::Rows rows = Sql("session_over_holding").Query(most);
        while (rows.Next()) sessions.push_back(rows.Int(0));
    }
    const std::string unreadable = base::JsonList({unreadable_.begin(), unreadable_.end()});
    std::vector<Doomed> doomed;
    auto collect = [&doomed](sqlite::Rows rows, Doomed::Why why) {
        while (rows.Next()) doomed.push_back({rows.Int(0), why});
    };
    for (std::int64_t no : sessions)
        collect(Sql("held_by").Query(no, unreadable, most), Doomed::Why::kSessionOver);
    std::sort(doomed.begin(), doomed.end(), [](const Doomed& a, const Doomed& b) {
        return a.task < b.task;
    });
    auto over = [&](State state, Time until) {
        return Sql("over_deadline").Query(static_cast<int>(state), Micros(until), unreadable, most);
    };
    std::size_t of_the_dead = doomed.size();
    collect(over(State::kInProgress, now_ - request.timeout_grace), Doomed::Why::kTimedOut);
    // A task of a dead session may be over its time as well: the death explains it.
    auto late = doomed.begin() + static_cast<std::ptrdiff_t>(of_the_dead);
    std::erase_if(doomed, [&, dead = std::vector(doomed.begin(), late)](const Doomed& one) {
        return one.why == Doomed::Why::kTimedOut &&
               std::any_of(dead.begin(), dead.end(), [&](const Doomed& d) {
                   return d.task == one.task;
               });
    });
    collect(over(State::kBackground, now_), Doomed::Why::kBackgroundOver);
    reply.more = doomed.size() > limit;
    if (reply.more) doomed.resize(limit);
    return doomed;
}

void Ops::MoveDoomed(const Doomed& doomed, const ReclaimRequest& request, ReclaimReply& reply) {
    TaskRow row;
    bool found = Load(TaskId(doomed.task), row);
    CHECK(found);
    if (!IsRetry(row.retry)) {
        // Told once; from now on it does not stand in the way of the others.
        if (unreadable_.size() < kUnreadable) unreadable_.insert(row.retry);
        reply.skipped.push_back(row.id);
        return;
    }
    Reclaimed report{.task = row.id};
    if (const SessionFacts* session = SessionAt(row.session)) {
        report.from = session->id;
        report.hostname = session->hostname;
    }
    switch (doomed.why) {
        case Doomed::Why::kSessionOver: {
            auto flight = request.flights.find(report.from);
            bool started = flight == request.flights.end() ||
                           std::find(flight->second.begin(), flight->second.end(), row.id) !=
                               flight->second.end();
            started ? ReclaimCrashed(row, report) : ReclaimUnstarted(row, report);
            break;
        }
        case Doomed::Why::kTimedOut:
            ReclaimTimedOut(row, report);
            break;
        case Doomed::Why::kBackgroundOver:
            ReclaimBackground(row, report);
            break;
    }
    Persist(row);
    report.to = row.state;
    report.suspect = row.Has(kSuspect);
    reply.tasks.push_back(std::move(report));
}

void Ops::CountCrash(TaskRow& row) {
    if (Planted(Bug::kCrashNotCounted)) return;
    if (!row.crash_from || now_ - *row.crash_from > limits::kCrashWindow) {
        row.crashes = 0;
        row.crash_from = now_;
    }
    ++row.crashes;
}

// It had started in a process that is gone: the attempt counts, and it is a suspect from now on.
// Only a crash while alone is its own.
void Ops::ReclaimCrashed(TaskRow& row, Reclaimed& report) {
    bool alone = row.Has(kAlone);
    if (alone) CountCrash(row);
    Disposition what = DecideCrash({
        .attempt = std::max(row.attempt, 1),
        .max_attempts = RetryOf(row.retry).max_attempts,
        .alone = alone,
        .crashes_alone = row.crashes,
        .cancel_requested = row.Has(kCancelRequested) && !Planted(Bug::kCancelForgotten),
    });
    if (what.event == Event::kCancel) what.reason = row.reason;
    row.error = ErrorText({
        .message = "its process on " + base::Quoted(report.hostname) + " ended without an outcome",
        .klass = "crash",
        .stack = {},
        .retryable = true,
    });
    Move(row, what.event, {.actor = kSweeper, .reason = what.reason, .session = report.from});
    EndAttempt(row, {.end = AttemptEnd::kCrashed, .error = row.error});
    row.reason = what.reason;
    row.progress.clear();
    if (row.state == State::kOpen) {
        row.Set(kSuspect, true);
        BackToWaiting(row, what.delay);
    }
    report.end = AttemptEnd::kCrashed;
    report.reason = what.reason;
}

// It was handed to a process that died before it ran it: back as it was, the attempt refunded.
void Ops::ReclaimUnstarted(TaskRow& row, Reclaimed& report) {
    bool cancel = row.Has(kCancelRequested) && !Planted(Bug::kCancelForgotten);
    report.end = AttemptEnd::kReleased;
    report.reason = cancel ? row.reason : "not started by its process";
    Move(
        row,
        cancel ? Event::kCancel : Event::kReclaim,
        {.actor = kSweeper, .reason = report.reason, .session = report.from}
    );
    EndAttempt(row, {.end = AttemptEnd::kReleased});
    row.progress.clear();
    if (cancel) {
        row.reason = report.reason;
    } else {
        --row.attempt;
        BackToWaiting(row, Duration::zero());
    }
}

void Ops::ReclaimTimedOut(TaskRow& row, Reclaimed& report) {
    TaskError error{
        .message = "not finished within its timeout of " + base::DurationText(row.timeout),
        .klass = "timeout",
        .stack = {},
        .retryable = true,
    };
    row.error = ErrorText(error);
    Disposition what = DecideFailure(RetryOf(row.retry), row.attempt, error, 0.5);
    if (row.Has(kCancelRequested) && !Planted(Bug::kCancelForgotten)) {
        what = {Event::kCancel, State::kCancelled, Duration::zero(), row.reason};
    }
    Move(row, what.event, {.actor = kSweeper, .reason = what.reason, .session = report.from});
    EndAttempt(row, {.end = AttemptEnd::kTimedOut, .error = row.error});
    row.reason = what.reason;
    row.progress.clear();
    if (!IsTerminal(row.state)) BackToWaiting(row, what.delay);
    report.end = AttemptEnd::kTimedOut;
    report.reason = what.reason;
}

void Ops::ReclaimBackground(TaskRow& row, Reclaimed& report) {
    bool again = AttemptsLeft(RetryOf(row.retry), row.attempt);
    report.end = AttemptEnd::kBackground;
    report.reason = again ? "not completed from outside in time"
                          : "not completed from outside in time; attempts exhausted";
    Move(
        row,
        again ? Event::kBackgroundTimeout : Event::kFailFinal,
        {.actor = kSweeper, .reason = report.reason, .session = {}}
    );
    row.reason = report.reason;
    if (again) BackToWaiting(row, Duration::zero());
}

void Ops::BackToWaiting(TaskRow& row, Duration delay) {
    row.reason.clear();
    if (Planted(Bug::kCancelForgotten)) row.Set(kCancelRequested, false);
    ToWaiting(row, now_ + delay);
    if (Planted(Bug::kReclaimLosesTask)) row.wait = Wait::kNowhere;
}

}  // namespace stint::store::lite
