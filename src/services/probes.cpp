#include "services/probes.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/result.h"
#include "base/text.h"
#include "base/thread.h"
#include "model/placement.h"
#include "services/probe_checks.h"

namespace stint::services {

namespace {

constexpr std::size_t kMostProbes = 100;
constexpr Duration kStopGrace = std::chrono::seconds{1};

}  // namespace

bool ProbeTally::Note(bool works) {
    bool first = !std::exchange(known_, true);
    failures_ = works ? 0 : failures_ + 1;
    successes_ = works ? successes_ + 1 : 0;
    bool before = offered_;
    if (works && successes_ >= pass_after_) offered_ = true;
    if (!works && failures_ >= fail_after_) offered_ = false;
    return before != offered_ || (first && !works);
}

struct Probes::Watched {
    Watched(Probe given, base::Clock& the_clock, base::Logger the_log)
        : probe(std::move(given)),
          clock(the_clock),
          log(std::move(the_log)),
          tally(probe.fail_after, probe.pass_after) {}

    const Probe probe;
    base::Clock& clock;  // lives as long as the process, or as those who test
    const base::Logger log;
    engine::Pulse pulse;

    mutable std::mutex mutex;
    std::condition_variable ended_changed;
    ProbeTally tally;                            // guarded by mutex, as all below
    std::optional<base::Instant> checking_from;  // a check runs
    std::optional<Time> since, checked_at;
    std::string message;
    bool ended = false;  // its thread is over, or about to be

    // Under mutex. A check that hangs is a check that failed.
    bool Offered(base::Instant now) const {
        bool late = checking_from && now - *checking_from > probe.timeout;
        return tally.offered() && !late;
    }
    bool WaitForEnd() {
        std::unique_lock lock(mutex);
        return ended_changed.wait_for(lock, kStopGrace, [this] { return ended; });
    }
};

struct Probes::Listener {
    std::mutex mutex;
    std::function<void()> call;  // guarded by mutex; none after Stop

    void Tell() {
        std::lock_guard guard(mutex);
        if (call) call();
    }
};

Probes::Probes(base::Clock& clock, base::Logger log, std::vector<Probe> probes)
    : clock_(clock), log_(log.For("probe")), listener_(std::make_shared<Listener>()) {
    if (probes.size() > kMostProbes) {
        throw std::invalid_argument(
            fmt::format("there are {} probes; the limit is {}", probes.size(), kMostProbes)
        );
    }
    for (Probe& probe : probes) {
        if (auto valid = ValidateProbe(probe); !valid) {
            throw std::invalid_argument(valid.error().message);
        }
        probe.resource = model::ResourceName(probe.resource);
        watched_.push_back(std::make_shared<Watched>(std::move(probe), clock_, log_));
    }
}

Probes::~Probes() {
    Stop();
}

void Probes::OnOffered(std::function<void()> listener) {
    std::lock_guard guard(listener_->mutex);
    listener_->call = std::move(listener);
}

void Probes::Start() {
    std::lock_guard guard(life_);
    if (!threads_.empty()) return;
    for (const auto& watched : watched_) {
        threads_.push_back(base::StartThread([watched, listener = listener_](std::stop_token stop) {
            Watch(watched, listener, stop);
            std::lock_guard ending(watched->mutex);
            watched->ended = true;
            watched->ended_changed.notify_all();
        }));
    }
}

void Probes::Stop() {
    OnOffered({});
    std::lock_guard guard(life_);
    for (std::jthread& thread : threads_) thread.request_stop();
    for (std::size_t i = 0; i < threads_.size(); ++i) {
        watched_[i]->pulse.Poke();
        if (watched_[i]->WaitForEnd()) {
            threads_[i].join();
            continue;
        }
        log_.Error(
            "a probe's callback does not return; its thread is left behind",
            {{"resource", watched_[i]->probe.resource}}
        );
        threads_[i].detach();
    }
    threads_.clear();
}

void Probes::Watch(
    const std::shared_ptr<Watched>& watched,
    const std::shared_ptr<Listener>& listener,
    std::stop_token stop
) {
    Watched& w = *watched;
    while (!stop.stop_requested()) {
        base::Instant begun = w.clock.Now();
        {
            std::lock_guard guard(w.mutex);
            w.checking_from = begun;
        }
        Result<void> works = RunProbe(w.probe, stop);
        if (stop.stop_requested()) return;
        base::Instant now = w.clock.Now();
        if (works && now - begun > w.probe.timeout) {
            works = base::MakeError(
                Code::kTimeout, "it took longer than its {} ms", w.probe.timeout.count()
            );
        }
        bool changed = false, offered = false, was_late = false;
        {
            std::lock_guard guard(w.mutex);
            was_late = !w.Offered(now) && w.tally.offered();
            changed = w.tally.Note(works.has_value()) || was_late;
            offered = w.tally.offered();
            w.checking_from.reset();
            w.checked_at = w.clock.WallTime();
            if (changed) w.since = w.checked_at;
            w.message = works ? std::string() : base::CleanText(works.error().message, 512);
        }
        if (changed && offered) {
            w.log.Info("a resource is offered", {{"resource", w.probe.resource}});
            listener->Tell();
        } else if (changed) {
            w.log.Warn(
                "a resource is withheld",
                {{"resource", w.probe.resource}, {"error", works ? "" : works.error().message}}
            );
        }
        w.pulse.Wait(w.clock, stop, begun + w.probe.every);
    }
}

std::vector<std::string> Probes::Withheld() const {
    std::set<std::string> withheld;
    base::Instant now = clock_.Now();
    for (const auto& watched : watched_) {
        std::lock_guard guard(watched->mutex);
        if (!watched->Offered(now)) withheld.insert(watched->probe.resource);
    }
    return {withheld.begin(), withheld.end()};
}

std::vector<ProbeInfo> Probes::Look() const {
    std::vector<ProbeInfo> all;
    base::Instant now = clock_.Now();
    for (const auto& watched : watched_) {
        std::lock_guard guard(watched->mutex);
        all.push_back(
            {.resource = watched->probe.resource,
             .offered = watched->Offered(now),
             .since = watched->since,
             .checked_at = watched->checked_at,
             .failures = watched->tally.failures(),
             .message = watched->message}
        );
    }
    return all;
}

}  // namespace stint::services
