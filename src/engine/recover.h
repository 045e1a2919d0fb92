// What dead workers left behind: any process may recover it, and the store divides the work.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "engine/attempts.h"
#include "engine/flight.h"
#include "engine/hooks.h"
#include "engine/parts.h"
#include "engine/session.h"
#include "engine/settle.h"

namespace stint::engine {

class Recoverer {
public:
    Recoverer(
        const Parts& parts,
        AttemptTable& attempts,
        Session& session,
        const Settler& settler,
        const SafeHooks& hooks,
        std::string state_dir,
        Duration timeout_grace
    );

    // Tasks of expired sessions, attempts past their deadline, background tasks past theirs. Throws
    // what the store throws.
    void Once();

private:
    std::map<SessionId, std::vector<TaskId>> Flights(const DeadFlights& dead) const;
    void Tell(const store::ReclaimReply& reply);
    void Tell(const store::Reclaimed& task);
    void ForgetFlights(DeadFlights& dead, const std::vector<SessionId>& expired);

    Parts parts_;
    AttemptTable& attempts_;
    Session& session_;
    const Settler& settler_;
    const SafeHooks& hooks_;
    const std::string state_dir_;
    const Duration timeout_grace_;
    base::Instant looked_{};  // of the real clock
};

}  // namespace stint::engine
