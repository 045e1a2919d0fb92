#include "engine/recover.h"

#include <algorithm>
#include <set>

#include "base/test_point.h"
#include "store/quiet.h"

namespace stint::engine {

namespace {

// One sweep moves at most this many batches: the rest is left to the next, or to others.
constexpr int kBatches = 100;

// Orphaned cancellations first, so that a log reads in the order in which things are decided.
bool CancelledFirst(const store::Reclaimed& a, const store::Reclaimed& b) {
    return (a.to == model::State::kCancelled) > (b.to == model::State::kCancelled);
}

// A death by crashes; others had no attempt left, or were to be cancelled.
bool Quarantined(const store::Reclaimed& task) {
    return task.to == model::State::kDead && task.reason.starts_with("quarantined");
}

model::Event EventOf(const store::Reclaimed& task) {
    switch (task.to) {
        case model::State::kCancelled:
            return model::Event::kCancel;
        case model::State::kDead:
            return Quarantined(task) ? model::Event::kQuarantine : model::Event::kFailFinal;
        case model::State::kError:
            return model::Event::kFailRetryable;
        default:
            return model::Event::kReclaim;
    }
}

}  // namespace

Recoverer::Recoverer(
    const Parts& parts,
    AttemptTable& attempts,
    Session& session,
    const Settler& settler,
    const SafeHooks& hooks,
    std::string state_dir,
    Duration timeout_grace
)
    : parts_(parts.For("recover")),
      attempts_(attempts),
      session_(session),
      settler_(settler),
      hooks_(hooks),
      state_dir_(std::move(state_dir)),
      timeout_grace_(timeout_grace) {
}

void Recoverer::Once() {
    base::TestPoint("sweep.before");
    DeadFlights dead;
    if (!state_dir_.empty()) dead = ReadDeadFlights(state_dir_);
    if (dead.files.empty() && session_.ended().empty() &&
        store::QuietFor(parts_.store, &store::Quiet::leases, looked_)) {
        ++parts_.metrics.sweeps;
        return;
    }
    looked_ = base::SystemClock().Now();
    std::vector<SessionId> expired;
    bool more = true;
    for (int i = 0; i < kBatches && more; ++i) {
        store::ReclaimRequest request;
        request.by = session_.id();
        request.timeout_grace = timeout_grace_;
        request.flights = Flights(dead);
        store::ReclaimReply reply = parts_.store.Reclaim(request);
        Tell(reply);
        expired.insert(expired.end(), reply.expired.begin(), reply.expired.end());
        more = reply.more;
    }
    ++parts_.metrics.sweeps;
    base::TestPoint("sweep.after");
    if (!more && !dead.files.empty()) ForgetFlights(dead, expired);
}

std::map<SessionId, std::vector<TaskId>> Recoverer::Flights(const DeadFlights& dead) const {
    auto flights = dead.flights;
    for (SessionId ours : session_.ended()) {
        auto& started = flights[ours];
        for (const AttemptPtr& attempt : attempts_.Of(ours)) {
            // What is told as not started must not start while it is told.
            if (attempt->Forbid()) continue;
            if (attempt->running() || attempt->began()) started.push_back(attempt->lease.task);
        }
        for (TaskId task : settler_.RanUnsettled(ours)) started.push_back(task);
    }
    return flights;
}

void Recoverer::Tell(const store::ReclaimReply& reply) {
    std::vector<store::Reclaimed> tasks = reply.tasks;
    std::stable_sort(tasks.begin(), tasks.end(), CancelledFirst);
    for (const store::Reclaimed& task : tasks) Tell(task);
    std::vector<wake::Hint> hints;
    for (const store::Reclaimed& task : tasks) {
        if (model::IsTerminal(task.to)) {
            hints.push_back({wake::Hint::Kind::kTaskFinished, {}, task.task});
        }
    }
    if (!hints.empty()) parts_.wake.Signal(hints);
}

void Recoverer::Tell(const store::Reclaimed& task) {
    ++parts_.metrics.reclaimed;
    if (Quarantined(task)) ++parts_.metrics.quarantined;
    parts_.log.Warn(
        "recovered a task",
        {{"task", task.task.ToString()},
         {"from", task.from.valid() ? task.from.ToString() : ""},
         {"host", task.hostname},
         {"end", std::string(model::AttemptEndName(task.end))},
         {"to", std::string(model::StateName(task.to))},
         {"suspect", task.suspect ? "yes" : "no"},
         {"reason", task.reason}}
    );
    auto from = task.end == model::AttemptEnd::kBackground ? model::State::kBackground
                                                           : model::State::kInProgress;
    hooks_.Transition(task.task, from, task.to, EventOf(task));
}

// A record is kept until the store no longer counts its session as living.
void Recoverer::ForgetFlights(DeadFlights& dead, const std::vector<SessionId>& expired) {
    for (SessionId session : expired) {
        auto file = dead.files.find(session);
        if (file == dead.files.end()) continue;
        file->second.Remove();
        dead.files.erase(file);
    }
    if (dead.files.empty()) return;
    std::set<SessionId> living;
    for (const store::SessionRecord& session : parts_.store.Sessions()) {
        if (session.state == model::SessionState::kLive ||
            session.state == model::SessionState::kDraining) {
            living.insert(session.id);
        }
    }
    for (auto& [session, file] : dead.files) {
        if (!living.contains(session)) file.Remove();
    }
}

}  // namespace stint::engine
