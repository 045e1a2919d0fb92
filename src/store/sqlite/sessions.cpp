// Sessions: opened, renewed, closed; lapsed at once when their process is known to be gone.
#include "base/check.h"
#include "base/json.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/queries.h"

namespace stint::store::lite {

NodeId Ops::OpenSession(const NewSession& session, const Opener& opener) {
    CHECK(session.id.valid());
    auto node = Sql("node_seen").Scalar(session.hostname, Micros(now_));
    CHECK(node.has_value());
    if (session.exclusive) {
        // Dead are: sessions of processes that are gone, and what this very handle opened before.
        // Another process that lives keeps its lease, whatever the caller believes.
        std::vector<std::int64_t> dead;
        {
            sqlite::Rows rows = Sql("session_openers").Query();
            while (rows.Next()) {
                bool mine = FromBytes<HandleId>(rows.Bytes(2)) == opener.handle;
                if (mine || ProcessIsGone(rows.Text(3))) dead.push_back(rows.Int(0));
            }
        }
        for (std::int64_t no : dead) Sql("session_lapse").Run(Micros(now_), no);
        sessions_.clear();
        session_by_no_.clear();
    }
    Bytes16 id = ToBytes(session.id);
    Bytes16 handle = ToBytes(opener.handle);
    Time lease_until = now_ + session.lease;
    auto of = Sql("session_add")
                  .Scalar(
                      sqlite::Blob(id),
                      *node,
                      session.hostname,
                      session.pid,
                      session.slots,
                      base::JsonList(session.queues),
                      base::JsonList(session.types),
                      base::JsonList(session.labels),
                      session.version,
                      Micros(now_),
                      Micros(now_),
                      Micros(lease_until),
                      sqlite::Blob(handle),
                      opener.process
                  );
    return NodeId(of.value());
}

int Ops::LapseSessionsOfTheDead() {
    std::vector<std::int64_t> dead;
    {
        sqlite::Rows rows = Sql("session_openers").Query();
        while (rows.Next()) {
            if (ProcessIsGone(rows.Text(3))) dead.push_back(rows.Int(0));
        }
    }
    for (std::int64_t no : dead) Sql("session_lapse").Run(Micros(now_), no);
    sessions_.clear();
    session_by_no_.clear();
    return static_cast<int>(dead.size());
}

RenewReply Ops::Renew(const RenewRequest& request) {
    RenewReply reply;
    reply.store_time = now_;
    SessionFacts* session = FindSession(request.session);
    if (session == nullptr || !IsLive(*session)) {
        // Never resurrected: a sweeper may be moving its tasks already.
        reply.lost = request.held;
        return reply;
    }
    reply.live = true;
    session->state = request.draining ? SessionState::kDraining : SessionState::kLive;
    session->lease_until = now_ + request.lease;
    Sql("session_renew")
        .Run(
            static_cast<int>(session->state),
            request.worker_state,
            request.running,
            Micros(now_),
            Micros(session->lease_until),
            session->no
        );
    Sql("node_touch").Run(Micros(now_), session->node.value());
    auto holds = [this](TaskId task, LeaseToken token, int* flags) {
        sqlite::Rows rows = Sql("task_held_check").Query(task.value());
        if (!rows.Next() || rows.IsNull(0)) return false;
        if (flags != nullptr) *flags = static_cast<int>(rows.Int(2));
        return FromBytes<LeaseToken>(rows.Bytes(1)) == token;
    };
    for (const Held& held : request.held) {
        int flags = 0;
        if (!holds(held.task, held.token, &flags)) {
            reply.lost.push_back(held);
        } else if ((flags & kCancelRequested) != 0) {
            reply.cancel_requested.push_back(held);
        }
    }
    for (const ProgressUpdate& update : request.progress) {
        if (!holds(update.task, update.token, nullptr)) continue;
        Sql("task_progress").Run(ProgressText(update.progress), update.task.value());
    }
    return reply;
}

void Ops::CloseSession(SessionId id) {
    SessionFacts* session = FindSession(id);
    if (session == nullptr || session->state >= SessionState::kClosed) return;
    session->state = SessionState::kClosed;
    Sql("session_end").Run(static_cast<int>(SessionState::kClosed), Micros(now_), session->no);
}

}  // namespace stint::store::lite
