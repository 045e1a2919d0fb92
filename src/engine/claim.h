// Taking work: free slots become a batch of leases.
//
// Polling is the truth: between poll.min and poll.max, longer while nothing is found, at once after
// a full batch, at the next due time if that is sooner. A hint only cuts the wait short.
//
// Suspects (tasks that were running in a process that crashed) run alone: when some wait, no more
// is claimed until the running ones have ended, then one suspect, and nothing beside it. That is
// tried for one lease period at most, so that a long task here keeps nobody else waiting for long;
// then ordinary work goes on, each time for longer, before it is tried again.
#pragma once

#include <stint/options.h>

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "engine/ahead.h"
#include "engine/attempts.h"
#include "engine/hooks.h"
#include "engine/machine.h"
#include "engine/parts.h"
#include "engine/registry.h"
#include "engine/session.h"
#include "model/room.h"

namespace stint::engine {

class Claimer {
public:
    struct Settings {
        std::vector<std::string> queues;
        PollOptions poll;
        Duration clear_for;  // how long to wait for an idle moment, for a suspect's sake
        int slots = 1;
        std::vector<std::string> labels = {};
        std::map<std::string, int> queue_limits = {}, type_limits = {};  // held here at once
        model::Room resource_limits = {};                                // likewise, of each
        std::function<std::vector<std::string>()> withheld = {};
    };

    Claimer(
        const Parts& parts,
        const Registry& registry,
        AttemptTable& attempts,
        Ahead& ahead,
        Session& session,
        Machine& machine,
        const SafeHooks& hooks,
        Settings settings
    );
    ~Claimer();

    // How many may be asked for now, of `room`; 0: the end of an attempt must come first, or
    // look_at().
    int Ready(int room);
    base::Instant look_at() const;  // when Ready may say something else by itself
    // One look for at most `limit` tasks. Returns when to look again. Throws what the store throws.
    base::Instant Once(int limit);

    // What a claim would offer to tasks now; by any thread.
    store::ClaimRequest Offered() const;

    // Called for each hint that concerns our queues.
    void OnHint(std::function<void()> listener);
    // As if one had come.
    void Hint() { hinted_ = true; }
    // The end of an attempt is worth another look.
    bool wants_room() const { return wants_room_.load(); }

private:
    enum class Mode : std::uint8_t {
        kOrdinary,
        kClearing,  // suspects wait: claiming nothing until nothing runs
        kAlone,     // a suspect runs
    };

    void Hear(const wake::Hint& hint);
    bool Serves(std::string_view queue) const;
    store::ClaimReply Ask(SessionId session, int limit, bool hinted);
    void LeaveRoom(store::ClaimRequest& request) const;
    int AtOnce() const;
    int Seats() const;  // so many may run here
    void Take(SessionId session, base::Instant sent, std::vector<store::Lease> leases);
    base::Instant Rest(const store::ClaimReply& reply);
    base::Instant LostTheRace();
    void HearOfSuspects(base::Instant now);
    void StopClearing(base::Instant now, Duration pause);

    Parts parts_;
    const Registry& registry_;
    AttemptTable& attempts_;
    Ahead& ahead_;
    Session& session_;
    Machine& machine_;
    const SafeHooks& hooks_;
    const Settings settings_;
    const std::vector<std::string> types_;
    int subscription_ = 0;

    // Touched by the claiming thread only.
    Mode mode_ = Mode::kOrdinary;
    base::Instant clear_until_{};     // in kClearing
    base::Instant clear_again_at_{};  // not before, while something runs here
    Duration clear_pause_;            // before the next try, should this one fail
    bool limited_ = false;            // the last claim left out a queue or a type that is full here
    bool raced_ = false;              // the suspect we were told of was somebody else's
    bool hints_pay_ = true;           // the last claim after a hint found something
    int likely_ = 0;                  // so many are there, by what was found last
    bool cautious_ = false;           // there is room for more than is asked for
    Duration interval_{};
    base::Instant poll_at_{};  // scratch of Once and Rest

    std::atomic<bool> hinted_{false};
    std::atomic<bool> wants_room_{false};
    std::mutex listener_mutex_;
    std::function<void()> listener_;  // guarded by listener_mutex_
};

}  // namespace stint::engine
