#include "engine/housekeep.h"

#include "store/quiet.h"

namespace stint::engine {

namespace {
constexpr int kCallsPerCycle = 20;
constexpr int kRestingCycles = 5;
}  // namespace

bool Housekeeper::Once() {
    store::HousekeepReply sum;
    bool more = true;
    const base::Instant now = parts_.clock.Now();
    if (now < again_at_ && claimed_ == parts_.metrics.claimed &&
        store::QuietFor(parts_.store, &store::Quiet::all, {})) {
        return false;
    }
    claimed_ = parts_.metrics.claimed;
    const store::HousekeepRequest request{.history = now >= history_at_};
    for (int i = 0; i < kCallsPerCycle && more; ++i) {
        store::HousekeepReply reply = parts_.store.Housekeep(request);
        sum.expired_tasks += reply.expired_tasks;
        sum.expired_keys += reply.expired_keys;
        sum.forgotten_sessions += reply.forgotten_sessions;
        for (std::string& period : reply.dropped_periods) {
            sum.dropped_periods.push_back(std::move(period));
        }
        more = reply.more;
    }
    again_at_ = now + (more ? Duration::zero() : kRestingCycles * every_);
    if (request.history && !more) history_at_ = now + history_every_;
    ++parts_.metrics.housekeepings;
    bool any = sum.expired_tasks + sum.expired_keys + sum.forgotten_sessions > 0;
    if (any || !sum.dropped_periods.empty()) {
        parts_.log.Info(
            "housekeeping",
            {{"expired_tasks", std::to_string(sum.expired_tasks)},
             {"expired_keys", std::to_string(sum.expired_keys)},
             {"forgotten_sessions", std::to_string(sum.forgotten_sessions)},
             {"dropped_periods", std::to_string(sum.dropped_periods.size())}}
        );
    }
    return more;
}

}  // namespace stint::engine
