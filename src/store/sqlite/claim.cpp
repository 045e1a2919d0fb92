// Claiming: the heads of the matching lanes, merged by priority and position. The cost depends on
// the number of lanes that may have something ready, not on what waits behind their heads.
#include <algorithm>
#include <queue>

#include "base/check.h"
#include "base/planted_bug.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/queries.h"

namespace stint::store::lite {

namespace {
constexpr int kPromoteBatch = 1000;
}

ClaimReply Ops::Claim(const ClaimRequest& request) {
    ClaimReply reply;
    SessionFacts* session = FindSession(request.session);
    bool live =
        session != nullptr && session->state < SessionState::kClosed && session->lease_until > now_;
    if (base::Planted(base::Bug::kClaimIgnoresSession)) live = session != nullptr;
    if (!live) {
        reply.session_live = false;
        return reply;
    }
    std::vector<Lane*> lanes = lanes_.Matching(request.queues, request.types);
    std::erase_if(lanes, [this](Lane* lane) {
        const QueueSettings* settings = QueueOf(lane->queue);
        return settings != nullptr && settings->paused;
    });
    for (Lane* lane : lanes) PromoteDue(*lane);
    reply.suspects_waiting = SuspectsWaiting(lanes);

    int limit = std::clamp(request.limit, 0, limits::kClaimBatch);
    if (request.suspect) limit = std::min(limit, 1);
    std::vector<Head> heads = Heads(lanes, request.suspect, limit);
    reply.leases.reserve(heads.size());
    for (const Head& head : heads) {
        reply.leases.push_back(Take(TaskId(head.id), *session, request.suspect));
    }
    auto note_due = [&](const Lane::Later& later) {
        if (!later.first) return;
        auto left = std::max(Duration::zero(), std::chrono::ceil<Duration>(*later.first - now_));
        if (!reply.next_due || left < *reply.next_due) reply.next_due = left;
    };
    for (Lane* lane : lanes) {
        note_due(lane->later);
        if (request.suspect) note_due(lane->later_suspect);
    }
    return reply;
}

void Ops::PromoteDue(Lane& lane) {
    PromoteDue(lane, false);
    PromoteDue(lane, true);
}

void Ops::PromoteDue(Lane& lane, bool suspects) {
    Lane::Later& later = suspects ? lane.later_suspect : lane.later;
    Time until = base::Planted(base::Bug::kClaimIgnoresDue) ? now_ + limits::kDelayMax : now_;
    if (later.known && (!later.first || *later.first > until)) return;
    std::vector<std::int64_t> due;
    {
        sqlite::Rows rows = Sql(suspects ? "later_suspect_due" : "later_due")
                                .Query(lane.id, Micros(until), kPromoteBatch);
        while (rows.Next()) due.push_back(rows.Int(0));
    }
    Wait ready = suspects ? Wait::kReadySuspect : Wait::kReady;
    for (std::int64_t id : due) Sql("task_set_wait").Run(static_cast<int>(ready), id);
    if (!due.empty()) (suspects ? lane.may_have_suspects : lane.may_be_ready) = true;
    auto first = Sql(suspects ? "later_suspect_first" : "later_first").Scalar(lane.id);
    later.first = first ? std::optional(FromMicros(*first)) : std::nullopt;
    later.known = true;
}

// The next `limit` claimable rows over all lanes. A lane is read in small pieces: most of what a
// long one holds is never needed.
std::vector<Ops::Head> Ops::Heads(std::span<Lane* const> lanes, bool suspects, int limit) {
    struct Source {
        Lane* lane;
        std::vector<Head> piece;
        std::size_t at = 0;
        bool more = true;
    };
    std::vector<Source> sources;
    for (Lane* lane : lanes) {
        if (suspects ? lane->may_have_suspects : lane->may_be_ready) sources.push_back({lane, {}});
    }
    if (sources.empty() || limit <= 0) return {};
    int piece = std::max(1, limit / static_cast<int>(sources.size()) + 1);

    auto refill = [&](Source& source, int urgency, std::int64_t position) {
        source.piece.clear();
        source.at = 0;
        int rows_read = 0;
        std::vector<std::int64_t> passed;
        {
            sqlite::Rows rows = Sql(suspects ? "suspect_heads" : "ready_heads")
                                    .Query(source.lane->id, urgency, position, piece);
            for (; rows.Next(); ++rows_read) {
                Head head{
                    rows.Int(0), static_cast<int>(rows.Int(1)), rows.Int(2), OptionalTime(rows, 3)};
                if (head.start_by && *head.start_by <= now_) {
                    passed.push_back(head.id);
                } else {
                    source.piece.push_back(head);
                }
            }
        }
        // Out of the claim's way until housekeeping comes: else each claim would wade through them.
        for (std::int64_t id : passed) {
            Sql("task_set_wait").Run(static_cast<int>(Wait::kStartByPassed), id);
        }
        source.more = rows_read == piece;
        return rows_read;
    };
    // Refills until there is a head or the lane is at its end.
    auto advance = [&](Source& source, int urgency, std::int64_t position) {
        do {
            int rows_read = refill(source, urgency, position);
            if (!source.piece.empty() || rows_read < piece) break;
        } while (true);
    };
    auto later = [&sources](std::size_t a, std::size_t b) {
        const Head& x = sources[a].piece[sources[a].at];
        const Head& y = sources[b].piece[sources[b].at];
        return std::tie(x.urgency, x.position) > std::tie(y.urgency, y.position);
    };
    std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(later)> merge(later);
    for (std::size_t i = 0; i < sources.size(); ++i) {
        advance(sources[i], -1, 0);
        if (!sources[i].piece.empty()) {
            merge.push(i);
        } else {
            (suspects ? sources[i].lane->may_have_suspects : sources[i].lane->may_be_ready) = false;
        }
    }
    std::vector<Head> heads;
    while (!merge.empty() && static_cast<int>(heads.size()) < limit) {
        std::size_t i = merge.top();
        merge.pop();
        Source& source = sources[i];
        Head head = source.piece[source.at++];
        heads.push_back(head);
        if (source.at == source.piece.size() && source.more) {
            advance(source, head.urgency, head.position);
        }
        if (source.at < source.piece.size()) merge.push(i);
    }
    return heads;
}

Lease Ops::Take(TaskId id, const SessionFacts& session, bool alone) {
    TaskRow& row = row_;
    bool found = Load(id, row);
    CHECK(found);
    Why why{.actor = "worker", .reason = {}, .session = session.id};
    if (row.state == State::kError) Move(row, Event::kRetryDue, why);
    ++row.attempt;
    ++row.claim_no;
    Move(row, Event::kClaim, why);
    row.claimed_at = now_;
    row.session = session.no;
    row.node = session.node;
    row.token = random_.MakeId<LeaseToken>();
    row.Set(kAlone, alone);
    if (row.timeout > Duration::zero()) {
        row.deadline_at = now_ + row.timeout;
    } else {
        row.deadline_at.reset();
    }
    Bytes16 token = ToBytes(row.token);
    Sql("task_claim")
        .Run(
            row.attempt,
            row.claim_no,
            row.flags,
            Micros(now_),
            Micros(now_),
            row.session,
            Micros(row.deadline_at),
            row.node.value(),
            sqlite::Blob(token),
            id.value()
        );
    const Lane& lane = lanes_.At(row.lane);
    Lease lease;
    lease.task = id;
    lease.token = row.token;
    lease.tenant = lane.tenant;
    lease.parent = row.parent;
    lease.type = lane.type;
    lease.queue = lane.queue;
    lease.priority = row.priority;
    lease.input = std::move(row.input);
    lease.attempt = row.attempt;
    lease.claim_no = row.claim_no;
    lease.generation = row.generation;
    lease.crash_count = row.crashes;
    lease.alone = alone;
    lease.retry = RetryOf(row.retry);
    lease.timeout = row.timeout;
    lease.idempotency_key = "task-" + id.ToString();
    lease.claimed_at = now_;
    return lease;
}

bool Ops::SuspectsWaiting(std::span<Lane* const> lanes) {
    for (Lane* lane : lanes) {
        if (!lane->may_have_suspects) continue;
        sqlite::Rows rows = Sql("suspect_heads").Query(lane->id, -1, 0, 1);
        if (rows.Next()) return true;
        lane->may_have_suspects = false;
    }
    return false;
}

}  // namespace stint::store::lite
