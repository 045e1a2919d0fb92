#include "base/check.h"
#include "store/memory/ops.h"

namespace stint::store::memory {

NodeId Ops::OpenSession(const NewSession& session) {
    CHECK(session.id.valid());
    if (session.exclusive) {
        // Their leases end now: the next Reclaim finds them as it finds every other dead one.
        for (auto& [id, other] : data_.sessions) {
            if (!other.over) other.record.lease_until = std::min(other.record.lease_until, now_);
        }
    }
    NodeRecord& node = data_.nodes[session.hostname];
    if (!node.id.valid()) node = {NodeId(data_.next_node++), session.hostname, now_};
    node.last_seen = now_;

    // An id that is there already stays as it is: a session that is over is never brought back.
    auto [at, is_new] = data_.sessions.try_emplace(session.id);
    if (!is_new) return at->second.record.node;
    at->second.record = {
        .id = session.id,
        .node = node.id,
        .hostname = session.hostname,
        .pid = session.pid,
        .state = SessionState::kLive,
        .worker_state = {},
        .slots = session.slots,
        .running = 0,
        .queues = session.queues,
        .types = session.types,
        .labels = session.labels,
        .version = session.version,
        .started_at = now_,
        .renewed_at = now_,
        .lease_until = now_ + session.lease,
    };
    return node.id;
}

RenewReply Ops::Renew(const RenewRequest& request) {
    RenewReply reply{.live = IsLive(request.session), .store_time = now_};
    if (!reply.live) {
        // Never resurrected: a sweeper may be moving its tasks already.
        reply.lost = request.held;
        return reply;
    }
    SessionRecord& session = data_.sessions.at(request.session).record;
    session.state = request.draining ? SessionState::kDraining : SessionState::kLive;
    session.worker_state = request.worker_state;
    session.running = request.running;
    session.renewed_at = now_;
    session.lease_until = now_ + request.lease;
    data_.nodes.at(session.hostname).last_seen = now_;

    auto held_with = [this](TaskId id, LeaseToken token) -> Task* {
        Task* task = Find(id);
        bool held = task != nullptr && task->record.state == State::kInProgress && token.valid() &&
                    task->token == token;
        return held ? task : nullptr;
    };
    for (const Held& held : request.held) {
        Task* task = held_with(held.task, held.token);
        if (task == nullptr) {
            reply.lost.push_back(held);
        } else if (task->record.cancel_requested) {
            reply.cancel_requested.push_back(held);
        }
    }
    for (const ProgressUpdate& update : request.progress) {
        Task* task = held_with(update.task, update.token);
        if (task != nullptr) task->record.progress = update.progress;
    }
    return reply;
}

void Ops::CloseSession(SessionId id) {
    auto found = data_.sessions.find(id);
    if (found == data_.sessions.end() || found->second.over) return;
    found->second.over = true;
    found->second.record.state = SessionState::kClosed;
    found->second.record.lease_until = now_;
}

std::vector<SessionRecord> Ops::Sessions() {
    std::vector<SessionRecord> sessions;
    for (const auto& [id, session] : data_.sessions) {
        SessionRecord& record = sessions.emplace_back(session.record);
        // Its lease is over even if no sweeper has come by yet.
        if (!session.over && record.lease_until <= now_) record.state = SessionState::kExpired;
    }
    return sessions;
}

}  // namespace stint::store::memory
