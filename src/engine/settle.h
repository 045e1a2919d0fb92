// Reporting outcomes: batches of what is queued, fenced by token, in three levels (SafeFail):
//
//   1. the store's normal connection
//   2. the reserved connection, if there is one
//   3. the local spool, replayed when the store answers again
//
// A commit whose end is unknown is read back by token, never taken for a failure.
//
// Only an error that blames the outcome itself (store::Unstorable) makes a failure of it. Any other
// refusal says nothing about the work that was done: that outcome is kept and tried again, ever
// less often, while others pass it by. One that is refused for too long is given up, and with it
// the session that holds its lease, so that the task comes back.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/flight.h"
#include "engine/hooks.h"
#include "engine/parts.h"
#include "engine/spool.h"

namespace stint::engine {

// What is noted of an attempt that ran, until the store has its outcome: a process that dies
// before that did start it.
struct Ran {
    std::shared_ptr<FlightRecord> flight = nullptr;
    int flight_slot = -1;
    bool ran = false;
};

class Settler {
public:
    // `reserved` may be null; `state_dir` empty: no spool.
    Settler(
        const Parts& parts, store::Store* reserved, std::string state_dir, const SafeHooks& hooks
    );

    // Never blocks: who claims makes sure of the room (see Room).
    void Push(Report report, Ran trace = {});
    // Tasks of this session that ran here and whose outcome is not yet with the store.
    std::vector<TaskId> RanUnsettled(SessionId session) const;
    void OnPush(std::function<void()> listener) { pushed_ = std::move(listener); }  // at start
    // An outcome will never reach the store: the lease of this session must end. Set at start.
    void OnGiveUp(std::function<void(SessionId)> listener) { given_up_ = std::move(listener); }

    // One batch, and first the spool if it holds any. When the store fails the outcomes are safe
    // (queued or spooled) and its exception is passed on. True: some were accepted or refused.
    bool Once();
    // Those of dead processes on this machine, as soon as nobody is in Once. Throws what the store
    // throws.
    void ReplayOrphans();

    int size() const;                     // in memory, on the way included
    bool next_is_success() const;         // of the first in the queue
    bool Holds(SessionId session) const;  // outcomes of this session, not yet with the store
    bool idle() const;                    // nothing in memory, nothing spooled
    bool sending() const;                 // somebody is in Once
    base::Instant next_try() const;       // when Once has something to do; max: nothing at all
    bool spooled() const { return !spool_.empty(); }

private:
    bool Due(base::Instant now) const;  // under mutex_
    std::vector<Report> Take();
    void PutBack(std::vector<Report> reports);
    void Send(std::vector<Report>& reports);
    void Resolve(std::vector<Report>& reports);
    void SendOneByOne(std::vector<Report>& reports);
    bool SendAlone(Report& report);
    bool SendReserved(std::vector<Report>& reports);
    bool SendUnstorable(Report& report, const std::string& why);
    bool Refused(Report& report, const std::string& why);
    void GiveUp(const store::Settlement& settlement, const std::string& why);
    void ReplaySpool();
    std::vector<Report> Replay(std::vector<Report> reports);
    void KeepRefused(std::vector<Report> reports);
    void ConcludeAll(std::vector<Report>& reports, const std::vector<store::SettleReply>& replies);
    bool Conclude(Report& report, const store::SettleReply& reply);  // false: it is for later
    void Accepted(const Report& report, const store::SettleReply& reply);
    void Postpone(Report& report, const store::SettleReply& reply);
    void Lost(Report& report);
    void FailInstead(Report& report, const store::SettleReply& reply);
    void Secure(std::vector<Report> reports);
    void Leave();
    void Forget(const store::Settlement& settlement);

    Parts parts_;
    store::Store* const reserved_;
    const SafeHooks& hooks_;
    Spool spool_;
    std::function<void()> pushed_;
    std::function<void(SessionId)> given_up_;

    mutable std::mutex mutex_;
    std::deque<Report> queue_;           // guarded by mutex_
    std::vector<SessionId> on_the_way_;  // sessions of the batch being sent; guarded by mutex_
    bool busy_ = false;                  // guarded by mutex_: one batch at a time
    std::condition_variable free_;       // no longer busy
    base::Instant replay_at_{};          // guarded by mutex_: what the spool holds was refused
    struct Trace {
        TaskId task;
        SessionId session;
        Ran ran;
    };
    std::unordered_map<LeaseToken, Trace> traces_;  // guarded by mutex_
    std::deque<LeaseToken> given_up_traces_;        // guarded by mutex_: oldest first

    std::vector<wake::Hint> hints_;  // touched by the one that is busy
};

}  // namespace stint::engine
