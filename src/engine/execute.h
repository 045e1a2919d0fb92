// Running one attempt: whatever the handler does, exactly one report comes out of it, unless the
// attempt was given up meanwhile; then somebody else made it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/ahead.h"
#include "engine/attempts.h"
#include "engine/flight.h"
#include "engine/hooks.h"
#include "engine/outcome.h"
#include "engine/parts.h"
#include "engine/session.h"
#include "engine/settle.h"

namespace stint::engine {

class Executor {
public:
    Executor(
        const Parts& parts,
        AttemptTable& attempts,
        Ahead& ahead,
        Session& session,
        Settler& settler,
        const SafeHooks& hooks,
        Duration timeout_grace,
        Duration kill_grace
    );

    // On the calling thread: one attempt, or several of one batch handler. False: they were given
    // up and this thread counts as lost; it must end without touching anything of the worker.
    bool Run(const std::vector<AttemptPtr>& crew);

    // Requests the stop of attempts whose time is over, gives up those that ignore it. Returns when
    // it wants to look again.
    base::Instant Watch();

    // Gives an attempt up and hands its task back with the attempt refunded: one that has not
    // begun, or one that ignores the shutdown.
    void HandBack(const AttemptPtr& attempt);

    // Called when an attempt has ended. Set before the first Run.
    void OnEnd(std::function<void()> listener) { ended_ = std::move(listener); }

    int threads_lost() const { return threads_lost_.load(); }

private:
    // Those that have begun: the others were told to stop before, or given up.
    std::vector<AttemptPtr> BeginAll(const std::vector<AttemptPtr>& crew);
    void ReturnUnstarted(const AttemptPtr& attempt);
    std::vector<AttemptResult> CallAll(const std::vector<AttemptPtr>& crew) const;
    AttemptResult Call(const AttemptPtr& attempt) const;
    static std::vector<AttemptResult> CallBatch(const std::vector<AttemptPtr>& crew);
    // Of one that ran, after_attempt is told: by its own runner here, by anybody else aside, since
    // that one has more to do.
    enum class Told : std::uint8_t { kNobody, kHere, kAside };
    void Report(
        const AttemptPtr& attempt, store::Settlement settlement, Told told, bool uncertain = false
    );
    void TellHost(const AttemptPtr& attempt, const store::Settlement& settlement, Told told);
    bool ShouldNotStart(const AttemptPtr& attempt) const;
    void GiveUp(const AttemptPtr& attempt);
    void HandBackBehind(const Attempt& attempt);
    void HandBackCrew(const Attempt& given_up);
    void CountLostThread(const Attempt& attempt);
    static AttemptInfo Info(const Attempt& attempt);

    Parts parts_;
    AttemptTable& attempts_;
    Ahead& ahead_;
    Session& session_;
    Settler& settler_;
    const SafeHooks& hooks_;
    const Duration timeout_grace_;
    const Duration kill_grace_;
    std::function<void()> ended_;
    std::atomic<int> threads_lost_{0};
};

}  // namespace stint::engine
