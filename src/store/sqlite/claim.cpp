// Claiming: the heads of the matching lanes, merged by priority and position. The cost depends on
// the number of lanes that may have something ready, not on what waits behind their heads.
#include <algorithm>
#include <map>
#include <queue>

#include "base/check.h"
#include "base/planted_bug.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/queries.h"

namespace stint::store::lite {

namespace {

constexpr int kPromotions = 1000;  // of one claim, over all lanes: others wait for the writer
constexpr std::size_t kPieceBytes = 1 << 20;  // of inputs that are read ahead of one lane

TaskFacts FactsOf(const TaskRow& row) {
    return {
        .state = row.state,
        .due_at = row.due_at,
        .start_by = row.start_by,
        .cancel_requested = row.Has(kCancelRequested),
        .suspect = row.Has(kSuspect),
    };
}

}  // namespace

ClaimReply Ops::Claim(const ClaimRequest& request) {
    ClaimReply reply;
    SessionFacts* session = FindSession(request.session);
    Claimer claimer(request, session != nullptr && IsLive(*session));
    if (session == nullptr || Skips(Sieve::kSession, {.claimer = claimer, .now = now_})) {
        reply.session_live = false;
        return reply;
    }
    std::vector<Lane*> lanes = lanes_.OfTypes(request.types);
    std::erase_if(lanes, [&](const Lane* lane) {
        return Skips(Sieve::kLane, {.claimer = claimer, .now = now_, .lane = FactsOf(*lane)});
    });
    PromoteDue(lanes);
    reply.suspects_waiting = SuspectsWaiting(lanes, request);

    int limit = std::clamp(request.limit, 0, limits::kClaimBatch);
    if (request.suspect) limit = std::min(limit, 1);
    std::size_t bytes = 0;
    std::vector<int> seats;
    std::vector<Head> heads = NeedsPlan(lanes, request)
                                  ? PlannedHeads(lanes, claimer, request, limit, seats, reply)
                                  : Heads(lanes, claimer, limit);
    std::vector<std::int64_t> groups(seats.size());
    for (std::int64_t& group : groups) group = static_cast<std::int64_t>(random_.Next() >> 1 | 1);
    for (const Head& head : heads) {
        if (bytes >= limits::kClaimBytes) break;
        const std::int64_t group =
            head.group < 0 ? 0 : groups[static_cast<std::size_t>(head.group)];
        reply.leases.push_back(Take(TaskId(head.id), *session, request.suspect, group));
        bytes += reply.leases.back().input.size();
    }
    WriteClaims(*session, request.suspect);
    heads.resize(reply.leases.size());
    TakeSlots(heads, seats, reply.leases);
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

LaneFacts Ops::FactsOf(const Lane& lane) {
    const QueueSettings* settings = QueueOf(lane.queue);
    return {lane.queue, lane.type, settings != nullptr && settings->paused};
}

// ---- what has become due ----

// The lanes whose tasks have waited longest come first, so that none is left out for ever when
// there are more than one claim may move.
void Ops::PromoteDue(std::span<Lane* const> lanes) {
    Time until = base::Planted(base::Bug::kClaimIgnoresDue) ? now_ + limits::kDelayMax : now_;
    struct Due {
        Lane* lane;
        bool suspects;
        Time first;
    };
    std::vector<Due> due;
    for (Lane* lane : lanes) {
        for (bool suspects : {false, true}) {
            const Lane::Later& later = FirstLater(*lane, suspects);
            if (later.first && *later.first <= until) due.push_back({lane, suspects, *later.first});
        }
    }
    if (due.empty()) return;
    std::sort(due.begin(), due.end(), [](const Due& a, const Due& b) { return a.first < b.first; });
    int left = kPromotions;
    int share = std::max(1, kPromotions / static_cast<int>(due.size()));
    for (const Due& one : due) {
        if (left <= 0) break;
        left -= Promote(*one.lane, one.suspects, until, share);
    }
}

const Lane::Later& Ops::FirstLater(Lane& lane, bool suspects) {
    Lane::Later& later = suspects ? lane.later_suspect : lane.later;
    if (later.known) return later;
    auto first = Sql(suspects ? "later_suspect_first" : "later_first").Scalar(lane.id);
    later.first = first ? std::optional(FromMicros(*first)) : std::nullopt;
    later.known = true;
    return later;
}

int Ops::Promote(Lane& lane, bool suspects, Time until, int most) {
    std::vector<std::int64_t> due;
    {
        sqlite::Rows rows =
            Sql(suspects ? "later_suspect_due" : "later_due").Query(lane.id, Micros(until), most);
        while (rows.Next()) due.push_back(rows.Int(0));
    }
    Wait ready = suspects ? Wait::kReadySuspect : Wait::kReady;
    for (std::int64_t id : due) Sql("task_set_wait").Run(static_cast<int>(ready), id);
    (suspects ? lane.may_have_suspects : lane.may_be_ready) = true;
    (suspects ? lane.later_suspect : lane.later).known = false;
    FirstLater(lane, suspects);
    return static_cast<int>(due.size());
}

// ---- heads ----

// A lane is read in small pieces: most of what a long one holds is never needed. Reads on until
// there is something to claim, or the lane is at its end.
void Ops::Refill(Source& source, const Claimer& claimer, int size) {
    source.piece.clear();
    source.at = 0;
    while (source.piece.empty() && source.more) {
        int rows_read = 0;
        std::size_t bytes = 0;
        std::vector<std::int64_t> passed;
        Situation situation{.claimer = claimer, .now = now_};
        {
            sqlite::Rows rows = Sql(claimer.suspects ? "suspect_heads" : "ready_heads")
                                    .Query(source.lane->id, source.urgency, source.position, size);
            TaskRow& row = row_;
            for (; bytes < kPieceBytes && rows.Next(); ++rows_read) {
                ReadTask(rows, row);
                bytes += row.input.size();
                source.urgency = limits::kPriorityMax - row.priority;
                source.position = row.position;
                situation.task = lite::FactsOf(row);
                if (!Skips(Sieve::kTask, situation)) {
                    source.piece.push_back(
                        {.id = row.id.value(),
                         .urgency = source.urgency,
                         .position = source.position,
                         .bytes = row.input.size()}
                    );
                    recent_.Keep(row);
                } else if (Applies(Condition::kStartByPassed, situation)) {
                    passed.push_back(row.id.value());
                }
            }
        }
        // Out of the claim's way until housekeeping comes: else each claim would wade through them.
        for (std::int64_t id : passed) {
            Sql("task_set_wait").Run(static_cast<int>(Wait::kStartByPassed), id);
        }
        source.more = rows_read == size || bytes >= kPieceBytes;
    }
}

// The next `limit` claimable rows over all lanes.
std::vector<Ops::Head> Ops::Heads(std::span<Lane* const> lanes, const Claimer& claimer, int limit) {
    std::vector<Source> sources;
    for (Lane* lane : lanes) {
        if (claimer.suspects ? lane->may_have_suspects : lane->may_be_ready) {
            sources.push_back({.lane = lane});
        }
    }
    if (sources.empty() || limit <= 0) return {};
    const int size = limit / static_cast<int>(sources.size()) + 1;

    auto later = [](const Source* a, const Source* b) {
        const Head& x = a->piece[a->at];
        const Head& y = b->piece[b->at];
        return std::tie(x.urgency, x.position) > std::tie(y.urgency, y.position);
    };
    std::priority_queue<Source*, std::vector<Source*>, decltype(later)> merge(later);
    for (Source& source : sources) {
        Refill(source, claimer, size);
        if (!source.piece.empty()) {
            merge.push(&source);
        } else {
            (claimer.suspects ? source.lane->may_have_suspects : source.lane->may_be_ready) = false;
        }
    }
    std::vector<Head> heads;
    std::size_t bytes = 0;
    while (!merge.empty() && static_cast<int>(heads.size()) < limit && bytes < limits::kClaimBytes
    ) {
        Source& source = *merge.top();
        merge.pop();
        bytes += source.piece[source.at].bytes;
        heads.push_back(source.piece[source.at++]);
        if (source.at == source.piece.size()) Refill(source, claimer, size);
        if (source.at < source.piece.size()) merge.push(&source);
    }
    return heads;
}

bool Ops::SuspectsWaiting(std::span<Lane* const> lanes, ClaimRequest request) {
    request.suspect = true;
    Claimer alone(request, true);
    for (Lane* lane : lanes) {
        if (!lane->may_have_suspects) continue;
        Source source{.lane = lane};
        Refill(source, alone, 1);
        if (!source.piece.empty()) return true;
        lane->may_have_suspects = false;
    }
    return false;
}

Lease Ops::Take(TaskId id, const SessionFacts& session, bool alone, std::int64_t group) {
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
    row.wait = Wait::kNowhere;
    row.progress.clear();
    row.reason.clear();
    recent_.Keep(row);
    claimed_.push_back({id, ToBytes(row.token), group});
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
    lease.stage = row.stage();
    lease.placement = lane.placement;
    if (row.Has(kOrdered)) ReadOrder(row.id, lease.placement);
    lease.group = group;
    lease.retry = RetryOf(row.retry);
    lease.timeout = row.timeout;
    lease.idempotency_key = "task-" + id.ToString();
    lease.claimed_at = now_;
    return lease;
}

// What Take() has decided, many rows with one statement.
void Ops::WriteClaims(const SessionFacts& session, bool alone) {
    std::ranges::sort(claimed_, {}, &Claimed::task);
    std::map<std::int64_t, std::vector<TaskId>> groups;
    for (const Claimed& one : claimed_) groups[one.group].push_back(one.task);
    for (auto& [shared, tasks] : groups) {
        const std::int64_t group = shared;  // a lambda takes no structured binding
        ForEachRun(std::move(tasks), [&](std::int64_t first, std::int64_t last) {
            int changed = Sql("task_claim")
                              .Run(
                                  first,
                                  last,
                                  alone ? static_cast<int>(kAlone) : 0,
                                  Micros(now_),
                                  session.no,
                                  session.node.value(),
                                  group
                              );
            CHECK(changed == last - first + 1);
        });
    }
    claimed_.clear();
}

std::optional<sqlite::Blob> Ops::TokenOf(std::int64_t task) const {
    auto found = std::ranges::lower_bound(claimed_, TaskId(task), {}, &Claimed::task);
    if (found == claimed_.end() || found->task != TaskId(task)) return std::nullopt;
    return sqlite::Blob(found->token);
}

}  // namespace stint::store::lite
