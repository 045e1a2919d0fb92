// The common claim: one lane serves, and what waits in it has never run and needs nothing but its
// turn. A statement of its own, because most of what a small claim costs is starting its plan.
//
// Which lane that may be is remembered from the last claim. The statement itself sees whether it is
// so: if not it takes nothing, and the ordinary claim is made, now and for a while.
#include <algorithm>

#include "base/test_point.h"
#include "store/postgres/claim_rows.h"
#include "store/postgres/statements.h"
#include "store/postgres/store_impl.h"

namespace stint::store::pg {

namespace {

constexpr int kPauseAfterMiss = 50;  // claims
constexpr std::size_t kMostPolicies = 100;

// The columns of the answer: said once, and of each task.
namespace column {
enum Once { kNow, kLive, kDecided, kNextDue };
enum Each { kTask = kNextDue + 1, kPosition, kFlags, kNumber, kInput, kParent, kPolicy, kTimeout };
}  // namespace column

Taken ReadPlainLease(const Rows& rows, int i, const LeaseTokens& tokens, const Lane& lane) {
    Taken taken;
    taken.position = rows.Int(i, column::kPosition);
    Lease& lease = taken.lease;
    lease.task = TaskId(rows.Int(i, column::kTask));
    lease.tenant = lane.tenant;
    lease.type = lane.type;
    lease.queue = lane.queue;
    lease.priority = lane.priority;
    lease.stage = StageOf(static_cast<int>(rows.Int(i, column::kFlags)));
    lease.token = tokens.Of(rows.Int(i, column::kNumber));
    lease.claimed_at = rows.At(0, column::kNow);
    lease.attempt = 1;
    lease.claim_no = 1;
    lease.generation = 1;
    lease.parent = TaskId(rows.Int(i, column::kParent));
    lease.timeout = Duration(rows.Int(i, column::kTimeout));
    lease.input = rows.Text(i, column::kInput);
    lease.idempotency_key = "task-" + lease.task.ToString();
    return taken;
}

std::int64_t MarkOf(const Marks::Snapshot& marks, int lane) {
    auto found = std::ranges::find(marks.lanes, lane);
    if (found == marks.lanes.end()) return 0;
    return marks.positions[static_cast<std::size_t>(found - marks.lanes.begin())];
}

}  // namespace

Params LaneParams(
    const ClaimRequest& request,
    int limit,
    const LeaseTokens& tokens,
    int lane,
    std::int64_t mark,
    const std::vector<std::int64_t>& policies,
    TenantId tenant
) {
    Params params = ClaimParams(request, limit, tokens);
    ArrayOf known(oid::kInt4);
    for (std::int64_t policy : policies) known.Int(policy);
    params.Int4(lane).Int(mark);
    known.AddTo(params);
    params.Number(tenant);
    return params;
}

// Where all of it came from one lane, that may be the only one.
void PostgresStore::RememberLane(const ClaimRequest& request, std::span<const Taken> taken) {
    if (request.suspect || taken.empty()) return;
    int lane = taken.front().lane;
    bool one = std::ranges::all_of(taken, [&](const Taken& each) { return each.lane == lane; });
    only_lane_ = one ? lane : 0;
}

// One transaction. False: nothing was taken, and the ordinary claim has to decide.
bool PostgresStore::ClaimOnlyLane(
    const ClaimRequest& request,
    int limit,
    const Marks::Snapshot& marks,
    ClaimReply& reply,
    std::vector<Taken>& taken
) {
    const int number = only_lane_;
    if (number == 0 || request.suspect) return false;
    if (lane_pause_ > 0) {
        --lane_pause_;
        return false;
    }
    const Lane lane = catalog_.LaneOf(number);
    const LeaseTokens tokens(limit, random_);
    const Params none;
    const Params claim = LaneParams(
        request,
        limit,
        tokens,
        number,
        MarkOf(marks, number),
        catalog_.KnownPolicies(kMostPolicies),
        lane.tenant
    );
    base::Clock& clock = base::SystemClock();
    const base::Instant begun = clock.Now();
    std::vector<Rows> rows = db_.RunVital([&](Transaction& transaction) {
        return ClaimBatch(
            transaction, {{&db_.sql.claim_begin, &none}, {&db_.sql.claim_lane, &claim}}, marks
        );
    });
    const Rows& found = rows[1];
    reply.session_live = found.Bool(0, column::kLive);
    if (reply.session_live && !found.Bool(0, column::kDecided)) {
        lane_pause_ = kPauseAfterMiss;
        base::TestPoint("store_postgres.not_only_lane");
        return false;
    }
    // As after every claim: from here on nothing may ask the server.
    base::TestPoint("store_postgres.claimed");
    base::TestPoint("store_postgres.only_lane");
    const int took = found.size() - 1;
    marks_.Looked(marks, begun, clock.Now(), took == limit);
    reply.suspects_waiting = false;
    reply.next_due.reset();
    if (!found.IsNull(0, column::kNextDue)) {
        reply.next_due =
            std::chrono::ceil<Duration>(found.At(0, column::kNextDue) - found.At(0, column::kNow));
    }
    for (int i = 1; i <= took; ++i) {
        Taken& one = taken.emplace_back(ReadPlainLease(found, i, tokens, lane));
        one.lane = number;
        one.lease.retry = catalog_.PolicyOf(static_cast<int>(found.Int(i, column::kPolicy)));
        marks_.Advance(number, one.position);
    }
    marks_.LowerAgain(marks);
    return true;
}

}  // namespace stint::store::pg
