// Claiming: the heads of the lanes, by priority and position.
#include <algorithm>

#include "base/check.h"
#include "base/test_point.h"
#include "base/text.h"
#include "model/placement.h"
#include "store/claimer_offer.h"
#include "store/postgres/claim_rows.h"
#include "store/postgres/statements.h"
#include "store/postgres/store_impl.h"

namespace stint::store::pg {

namespace {

constexpr int kPromoteAtLeast = 100;
constexpr auto kLateAtOnce = std::chrono::milliseconds{500};

Duration Until(Time due, Time now) {
    return std::chrono::ceil<Duration>(due - now);
}

}  // namespace

LeaseTokens::LeaseTokens(int count, base::Random& random) {
    for (int i = 0; i * kTasksPerLease < count; ++i) {
        keys.push_back(static_cast<std::int64_t>(random.Next()));
    }
    secrets.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) secrets.push_back(static_cast<std::int64_t>(random.Next() | 1));
}

LeaseToken LeaseTokens::Of(std::int64_t number) const {
    auto at = static_cast<std::size_t>(number - 1);
    return TokenOf(keys.at(at / kTasksPerLease), secrets.at(at));
}

// The columns of the answer.
namespace {
enum Once { kNow, kLanes, kQueues, kTypes, kTenants, kPriorities, kPolicies, kRetries };
enum Each {
    kTask = kRetries + 1,
    kLane,
    kPosition,
    kFlags,
    kNumber,
    kInput,
    kParent,
    kPolicy,
    kTimeout,
    kAttempt,
    kClaimNo,
    kGeneration,
    kCrashes,
    kOrderKey,
    kOnFailed,
};
enum OfTheLook {  // of claim.sql
    kSessionLive = kOnFailed + 1,
    kSuspectsWaiting,
    kNextDue,
    kDeepLanes,
    kDeepPositions,
    kSpecial,
};
}  // namespace

void LearnNames(const Rows& rows, bool suspects, Catalog& catalog) {
    if (rows.IsNull(0, kLanes)) return;
    std::vector<std::int64_t> lanes = rows.Ints(0, kLanes), tenants = rows.Ints(0, kTenants),
                              priorities = rows.Ints(0, kPriorities),
                              policies = rows.Ints(0, kPolicies);
    std::vector<std::string> queues = rows.Texts(0, kQueues), types = rows.Texts(0, kTypes),
                             retries = rows.Texts(0, kRetries);
    for (std::size_t k = 0; k < lanes.size(); ++k) {
        Lane lane{queues[k], types[k], TenantId(tenants[k]), static_cast<int>(priorities[k])};
        lane.suspect = suspects;
        catalog.Learn(static_cast<int>(lanes[k]), lane);
    }
    for (std::size_t k = 0; k < policies.size(); ++k) {
        catalog.LearnPolicy(static_cast<int>(policies[k]), retries[k]);
    }
}

Taken ReadLease(
    const Rows& rows, int i, const LeaseTokens& tokens, Catalog& catalog, LastPlacement& last
) {
    // What nothing is kept of is as it is for a task's first claim.
    auto number = [&](int column, int first) {
        return rows.IsNull(i, column) ? first : static_cast<int>(rows.Int(i, column));
    };
    Taken taken;
    taken.lane = static_cast<int>(rows.Int(i, kLane));
    taken.position = rows.Int(i, kPosition);
    Lane lane = catalog.LaneOf(taken.lane);
    Lease& lease = taken.lease;
    const auto flags = static_cast<int>(rows.Int(i, kFlags));
    lease.task = TaskId(rows.Int(i, kTask));
    lease.tenant = lane.tenant;
    lease.type = std::move(lane.type);
    lease.queue = std::move(lane.queue);
    lease.priority = lane.priority;
    lease.alone = (flags & kAlone) != 0;
    lease.stage = StageOf(flags);
    lease.token = tokens.Of(rows.Int(i, kNumber));
    lease.claimed_at = rows.At(0, kNow);
    lease.attempt = number(kAttempt, 1);
    lease.claim_no = number(kClaimNo, 1);
    lease.generation = number(kGeneration, 1);
    lease.crash_count = number(kCrashes, 0);
    lease.parent = TaskId(rows.Int(i, kParent));
    lease.retry = catalog.PolicyOf(static_cast<int>(rows.Int(i, kPolicy)));
    lease.timeout = Duration(rows.Int(i, kTimeout));
    lease.input = rows.Text(i, kInput);
    lease.idempotency_key = "task-" + lease.task.ToString();
    if (last.lane != taken.lane) last = {taken.lane, PlacementOf(lane.placement)};
    lease.placement = last.placement;
    if (!rows.IsNull(i, kOrderKey)) {
        lease.placement.order_key = rows.Text(i, kOrderKey);
        lease.placement.on_failed_head = static_cast<OnFailedHead>(rows.Int(i, kOnFailed));
    }
    return taken;
}

Params ClaimerParams(const ClaimRequest& request) {
    Params params;
    request.session.valid() ? params.Uuid(request.session) : params.Null(oid::kUuid);
    AddTexts(params, request.queues);
    AddTexts(params, request.types);
    params.Bool(request.suspect);
    return params;
}

Params PromoteParams(const ClaimRequest& request, int limit) {
    Params params = ClaimerParams(request);
    params.Int4(std::max(limit, kPromoteAtLeast));
    return params;
}

void AddMarks(Params& params, const Marks::Snapshot& marks) {
    ArrayOf lanes(oid::kInt4);
    for (int lane : marks.lanes) lanes.Int(lane);
    lanes.AddTo(params);
    AddInts(params, marks.positions);
}

Params ClaimParams(const ClaimRequest& request, int limit, const LeaseTokens& tokens) {
    Params params = ClaimerParams(request);
    params.Int4(limit);
    AddInts(params, tokens.keys);
    AddInts(params, tokens.secrets);
    return params;
}

Params IdleParams(const ClaimRequest& request, const Marks::Snapshot& marks, Duration ahead) {
    Params params = ClaimerParams(request);
    AddMarks(params, marks);
    params.Int(ahead.count());
    return params;
}

void PostgresStore::NoteUnderWay(const Marks::Snapshot& look, const Rows& tick) {
    InProgress seen = ParseInProgress(tick.View(0, 0));
    seen.own = static_cast<std::uint64_t>(tick.Int(0, 1));
    marks_.UnderWay(look, seen);
}

// Beside claims: whether something has come to light that they have passed over. True: it has, and
// the next claim begins there.
bool PostgresStore::LookForLate(bool at_leisure) {
    base::Clock& clock = base::SystemClock();
    const base::Instant until = clock.Now() + kLateAtOnce;
    do {
        const base::Instant begun = clock.Now();
        auto piece = marks_.LookForLate(begun, at_leisure);
        if (!piece) return false;
        try {
            Params params;
            ArrayOf lanes(oid::kInt4);
            for (int lane : piece->lanes) lanes.Int(lane);
            lanes.AddTo(params);
            AddInts(params, piece->low);
            AddInts(params, piece->high);
            Rows found = db_.ReadVital(db_.sql.late, params);
            marks_.FoundLate(*piece, clock.Now() - begun, PlacesOf(found));
            if (!found.empty()) return true;
        } catch (const std::exception&) {
            // Whoever claims hears of it if the server is gone.
            marks_.FailedLate(clock.Now() - begun);
            return false;
        }
    } while (at_leisure && clock.Now() < until);
    return false;
}

// An idle worker asks one small question per poll. True: there is nothing to claim, and `reply`
// says so.
bool PostgresStore::NothingToClaim(const ClaimRequest& request, ClaimReply& reply) {
    base::Clock& clock = base::SystemClock();
    base::Instant begun = clock.Now();
    Marks::Snapshot marks = marks_.Idle(begun);
    Rows rows = db_.ReadVital(db_.sql.claim_idle, IdleParams(request, marks, kQuietAhead));
    if (marks.asks()) NoteUnderWay(marks, db_.ReadVital(db_.sql.tick));
    reply.session_live = rows.Bool(0, 1);
    if (!reply.session_live) return true;
    if (rows.Bool(0, 2)) return false;
    marks_.Looked(marks, begun, clock.Now(), false);
    if (!rows.IsNull(0, 3)) reply.next_due = Until(rows.At(0, 3), rows.At(0, 0));
    reply.suspects_waiting = rows.Bool(0, 4);
    Quiet quiet{
        .seen = begun,
        .schedules = rows.Bool(0, 5),
        .events = rows.Bool(0, 6),
        .leases = rows.Bool(0, 7),
        .deletions = rows.Bool(0, 8),
        .deadlines = rows.Bool(0, 9)};
    std::lock_guard guard(quiet_mutex_);
    quiet_ = quiet;
    return true;
}

std::optional<Quiet> PostgresStore::LastQuiet() {
    std::lock_guard guard(quiet_mutex_);
    return quiet_;
}

std::vector<std::pair<int, std::int64_t>> PlacesOf(const Rows& promoted) {
    std::vector<std::pair<int, std::int64_t>> places;
    for (int i = 0; i < promoted.size(); ++i) {
        places.emplace_back(static_cast<int>(promoted.Int(i, 0)), promoted.Int(i, 1));
    }
    return places;
}

// The next look begins behind what could not be taken. True: further than any look so far.
bool PostgresStore::SkipPassed(
    const std::vector<std::int64_t>& lanes, const std::vector<std::int64_t>& positions
) {
    bool further = false;
    for (std::size_t i = 0; i < lanes.size(); ++i) {
        further |= marks_.Advance(static_cast<int>(lanes[i]), positions[i]);
    }
    return further;
}

// The statements of a claim, with COMMIT, and the question for a tick where one is asked.
std::vector<Rows> PostgresStore::ClaimBatch(
    Transaction& transaction, std::vector<postgres::Command> commands, const Marks::Snapshot& marks
) {
    const Params none;
    if (marks.asks()) commands.push_back({&db_.sql.tick, &none});
    std::vector<Rows> rows = transaction.Batch(commands, true);
    if (marks.asks()) NoteUnderWay(marks, rows.back());
    return rows;
}

// One transaction: what has become due goes to its place, and the heads are taken. True: some of it
// went to places that this look may have passed over.
bool PostgresStore::ClaimOnce(
    const ClaimRequest& request,
    int limit,
    const Marks::Snapshot& marks,
    ClaimReply& reply,
    std::vector<Taken>& taken
) {
    if (ClaimOnlyLane(request, limit, marks, reply, taken)) return false;
    Params promote = PromoteParams(request, limit);
    const LeaseTokens tokens(limit, random_);
    Params claim = ClaimParams(request, limit, tokens);
    AddMarks(claim, marks);
    base::Clock& clock = base::SystemClock();
    base::Instant begun = clock.Now();
    // COMMIT rides along, so there is nothing left for Run to commit.
    std::vector<Rows> rows = db_.RunVital([&](Transaction& transaction) {
        return ClaimBatch(
            transaction, {{&db_.sql.promote, &promote}, {&db_.sql.claim, &claim}}, marks
        );
    });
    // From here on nothing may ask the server: the leases are ours, and the caller must hear of
    // them.
    base::TestPoint("store_postgres.claimed");
    const Rows& found = rows[1];
    const bool special = found.Bool(0, kSpecial);
    special_ = special;
    bool to_the_end = found.IsNull(0, kDeepLanes);
    const int took = found.size() - 1;
    if (!special) marks_.Looked(marks, begun, clock.Now(), to_the_end && took == limit);
    reply.session_live = found.Bool(0, kSessionLive);
    reply.suspects_waiting = found.Bool(0, kSuspectsWaiting);
    reply.next_due.reset();
    if (!found.IsNull(0, kNextDue)) {
        reply.next_due = Until(found.At(0, kNextDue), found.At(0, kNow));
    }
    if (!to_the_end && SkipPassed(found.Ints(0, kDeepLanes), found.Ints(0, kDeepPositions))) {
        reply.next_due = Duration::zero();
    }
    LearnNames(found, request.suspect, catalog_);
    LastPlacement last;
    for (int i = 1; i <= took; ++i) {
        taken.push_back(ReadLease(found, i, tokens, catalog_, last));
        marks_.Advance(taken.back().lane, taken.back().position);
    }
    RememberLane(request, std::span(taken).last(static_cast<std::size_t>(took)));
    // After the above: what has become due may lie below what was taken.
    marks_.LowerAgain(marks);
    marks_.Lower(PlacesOf(rows[0]));
    return !rows[0].empty();
}

void PostgresStore::TakeReady(
    const ClaimRequest& request, int limit, ClaimReply& reply, std::vector<Taken>& taken
) {
    base::Clock& clock = base::SystemClock();
    // What needs more than its turn needs a plan.
    auto to_plan = [&] { return special_ || HasRoomLimits(request); };
    if (to_plan()) return ClaimPlanned(request, limit, reply, taken);
    // The second round, if any, looks deeper, or where what has just become due went.
    Marks::Snapshot marks = marks_.Current(clock.Now());
    for (int round = 0; round < 2 && !to_plan(); ++round) {
        int wanted = limit - static_cast<int>(taken.size());
        bool promoted = false;
        try {
            promoted = ClaimOnce(request, wanted, marks, reply, taken);
        } catch (const CommitUnknown&) {
            throw;
        } catch (const std::exception&) {
            if (taken.empty()) throw;
            break;  // nothing came of this round, but the one before is committed
        }
        bool enough = static_cast<int>(taken.size()) >= limit || !reply.session_live ||
                      reply.next_due == Duration::zero();
        if (marks.everywhere() || enough) break;
        if (promoted) {
            marks = marks_.Current(clock.Now());
            continue;
        }
        // What was found is not kept waiting for another look; that is for one of the next claims.
        if (!taken.empty()) {
            if (marks.depth == Marks::Depth::kMarks) marks_.Owe();
            break;
        }
        auto deeper = marks_.Deeper(clock.Now(), marks.depth);
        if (!deeper) break;
        marks = std::move(*deeper);
    }
    if (to_plan()) {
        ClaimPlanned(request, limit - static_cast<int>(taken.size()), reply, taken);
    }
}

ClaimReply PostgresStore::Claim(const ClaimRequest& request) {
    int limit = std::clamp(request.limit, 0, request.suspect ? 1 : limits::kClaimBatch);
    ClaimReply reply;
    // What was announced is not kept waiting for it.
    LookForLate(idle_ && !request.hinted);
    if (idle_ && !request.hinted && NothingToClaim(request, reply)) return reply;
    std::vector<Taken> taken;
    TakeReady(request, limit, reply, taken);
    if (taken.empty() && reply.session_live) {
        if (LookForLate(true)) TakeReady(request, limit, reply, taken);
        if (taken.empty() && marks_.LateGoesOn(base::SystemClock().Now())) {
            reply.next_due = Duration::zero();
        }
    }
    idle_ = taken.empty();
    if (!taken.empty()) {
        std::lock_guard guard(quiet_mutex_);
        quiet_.reset();
    }
    std::sort(taken.begin(), taken.end(), [](const Taken& a, const Taken& b) {
        return std::pair(-a.lease.priority, a.position) < std::pair(-b.lease.priority, b.position);
    });
    for (Taken& one : taken) reply.leases.push_back(std::move(one.lease));
    return reply;
}

}  // namespace stint::store::pg
