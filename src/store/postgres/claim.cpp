// Claiming: the heads of the lanes, by priority and position; and why a task would be skipped.
#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/test_point.h"
#include "base/text.h"
#include "store/postgres/statements.h"
#include "store/postgres/store_impl.h"

namespace stint::store::pg {

struct Taken {
    Lease lease;
    int lane;
    std::int64_t position;
};

namespace {

constexpr int kTasksPerLease = 256;  // their arrays stay within a page
constexpr int kPromoteAtLeast = 100;

Duration Until(Time due, Time now) {
    return std::chrono::ceil<Duration>(due - now);
}

// One row of the answer tells what its lanes and policies are.
void LearnNames(const Rows& rows, bool suspects, Catalog& catalog) {
    for (int i = 0; i < rows.size(); ++i) {
        if (rows.IsNull(i, 18)) continue;
        std::vector<std::int64_t> lanes = rows.Ints(i, 18), tenants = rows.Ints(i, 21),
                                  priorities = rows.Ints(i, 22), policies = rows.Ints(i, 23);
        std::vector<std::string> queues = rows.Texts(i, 19), types = rows.Texts(i, 20),
                                 retries = rows.Texts(i, 24);
        for (std::size_t k = 0; k < lanes.size(); ++k) {
            Lane lane{queues[k], types[k], TenantId(tenants[k]), static_cast<int>(priorities[k])};
            lane.suspect = suspects;
            catalog.Learn(static_cast<int>(lanes[k]), lane);
        }
        for (std::size_t k = 0; k < policies.size(); ++k) {
            catalog.LearnPolicy(static_cast<int>(policies[k]), retries[k]);
        }
        return;
    }
}

Taken ReadLease(const Rows& rows, int i, Catalog& catalog) {
    Taken taken;
    taken.lane = static_cast<int>(rows.Int(i, 4));
    taken.position = rows.Int(i, 5);
    Lane lane = catalog.LaneOf(taken.lane);
    Lease& lease = taken.lease;
    lease.task = TaskId(rows.Int(i, 3));
    lease.tenant = lane.tenant;
    lease.type = lane.type;
    lease.queue = lane.queue;
    lease.priority = lane.priority;
    lease.alone = (rows.Int(i, 6) & kAlone) != 0;
    lease.token = TokenOf(rows.Int(i, 7), rows.Int(i, 8));
    lease.claimed_at = rows.At(i, 9);
    lease.attempt = static_cast<int>(rows.Int(i, 10));
    lease.claim_no = static_cast<int>(rows.Int(i, 11));
    lease.generation = static_cast<int>(rows.Int(i, 12));
    lease.crash_count = static_cast<int>(rows.Int(i, 13));
    lease.parent = TaskId(rows.Int(i, 14));
    lease.retry = catalog.PolicyOf(static_cast<int>(rows.Int(i, 15)));
    lease.timeout = Duration(rows.Int(i, 16));
    lease.input = rows.Text(i, 17);
    lease.idempotency_key = "task-" + lease.task.ToString();
    return taken;
}

}  // namespace

Params ClaimParams(
    const ClaimRequest& request, int limit, const Marks::Snapshot& marks, base::Random& random
) {
    Params params;
    params.Uuid(request.session).Int4(limit);
    std::vector<std::int64_t> keys, secrets;
    for (int i = 0; i * kTasksPerLease < limit; ++i) {
        keys.push_back(static_cast<std::int64_t>(random.Next()));
    }
    for (int i = 0; i < limit; ++i) secrets.push_back(static_cast<std::int64_t>(random.Next() | 1));
    AddInts(params, keys);
    AddInts(params, secrets);
    AddTexts(params, request.queues);
    AddTexts(params, request.types);
    params.Bool(request.suspect);
    ArrayOf lanes(oid::kInt4);
    for (int lane : marks.lanes) lanes.Int(lane);
    lanes.AddTo(params);
    AddInts(params, marks.positions);
    return params;
}

// An idle worker asks one small question per poll. True: there is nothing to claim, and `reply`
// says so.
bool PostgresStore::NothingToClaim(const ClaimRequest& request, ClaimReply& reply) {
    Params probe;
    probe.Uuid(request.session);
    AddTexts(probe, request.queues);
    AddTexts(probe, request.types);
    probe.Bool(request.suspect);
    Rows rows = db_.ReadVital(db_.sql.claim_idle, probe);
    reply.session_live = rows.Bool(0, 1);
    if (!reply.session_live) return true;
    if (rows.Bool(0, 2)) return false;
    if (!rows.IsNull(0, 3)) reply.next_due = Until(rows.At(0, 3), rows.At(0, 0));
    reply.suspects_waiting = rows.Bool(0, 4);
    return true;
}

// One transaction: what has become due goes to its place, and the heads are taken.
void PostgresStore::ClaimOnce(
    const ClaimRequest& request,
    int limit,
    const Marks::Snapshot& marks,
    ClaimReply& reply,
    std::vector<Taken>& taken
) {
    Params promote;
    AddTexts(promote, request.queues);
    AddTexts(promote, request.types);
    promote.Int4(std::max(limit, kPromoteAtLeast));
    Params claim = ClaimParams(request, limit, marks, random_);
    base::Clock& clock = base::SystemClock();
    base::Instant begun = clock.Now();
    // COMMIT rides along, so there is nothing left for Run to commit.
    std::vector<Rows> rows = db_.RunVital([&](Transaction& transaction) {
        std::array<postgres::Command, 2> commands = {
            {{&db_.sql.promote, &promote}, {&db_.sql.claim, &claim}}};
        return transaction.Batch(commands, true);
    });
    // From here on nothing may ask the server: the leases are ours, and the caller must hear of
    // them.
    base::TestPoint("store_postgres.claimed");
    if (marks.lanes.empty()) marks_.Rescanned(begun, clock.Now());
    for (int i = 0; i < rows[0].size(); ++i) {
        marks_.Lower(static_cast<int>(rows[0].Int(i, 0)), rows[0].Int(i, 1));
    }
    const Rows& found = rows[1];
    reply.session_live = found.Bool(0, 0);
    reply.suspects_waiting = found.Bool(0, 1);
    reply.next_due.reset();
    if (!found.IsNull(0, 2)) reply.next_due = Until(found.At(0, 2), found.At(0, 9));
    LearnNames(found, request.suspect, catalog_);
    for (int i = 0; i < found.size() && !found.IsNull(i, 3); ++i) {
        taken.push_back(ReadLease(found, i, catalog_));
        marks_.Advance(taken.back().lane, taken.back().position);
    }
}

ClaimReply PostgresStore::Claim(const ClaimRequest& request) {
    base::Clock& clock = base::SystemClock();
    int limit = std::clamp(request.limit, 0, request.suspect ? 1 : limits::kClaimBatch);
    ClaimReply reply;
    if (idle_ && NothingToClaim(request, reply)) return reply;
    std::vector<Taken> taken;
    // The second round, if any, looks below the marks.
    for (int round = 0; round < 2; ++round) {
        Marks::Snapshot marks = round == 0 ? marks_.Current(clock.Now()) : Marks::Snapshot();
        bool everywhere = marks.lanes.empty();
        int wanted = limit - static_cast<int>(taken.size());
        try {
            ClaimOnce(request, wanted, marks, reply, taken);
        } catch (const CommitUnknown&) {
            throw;
        } catch (const std::exception&) {
            if (taken.empty()) throw;
            break;  // nothing came of this round, but the one before is committed
        }
        bool enough = static_cast<int>(taken.size()) >= limit || !reply.session_live;
        if (everywhere || enough || !marks_.RescanNow(clock.Now())) break;
    }
    idle_ = taken.empty();
    std::sort(taken.begin(), taken.end(), [](const Taken& a, const Taken& b) {
        return std::pair(-a.lease.priority, a.position) < std::pair(-b.lease.priority, b.position);
    });
    for (Taken& one : taken) reply.leases.push_back(std::move(one.lease));
    return reply;
}

// ---- explain -----------------------------------------------------------------------------------

namespace {

bool Contains(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

// What the claim's conditions depend on beside the task.
struct Scene {
    const ClaimRequest& claimer;
    Time now;
    bool queue_paused;
    bool session_live;
};

// The same list as in queries/claim.sql, for one task.
std::vector<Explanation> Reasons(const TaskRecord& task, const Scene& scene) {
    std::vector<Explanation> reasons;
    const ClaimRequest& claimer = scene.claimer;
    if (task.state != State::kOpen && task.state != State::kError) {
        reasons.push_back({Condition::kNotWaiting, "it is " + std::string(StateName(task.state))});
        return reasons;
    }
    if (task.due_at > scene.now) {
        reasons.push_back({Condition::kNotDue, "due at " + base::Iso8601(task.due_at)});
    }
    if (task.start_by && *task.start_by <= scene.now) {
        reasons.push_back(
            {Condition::kStartByPassed, "start-by was " + base::Iso8601(*task.start_by)}
        );
    }
    if (scene.queue_paused) {
        reasons.push_back({Condition::kQueuePaused, "queue " + base::Quoted(task.queue)});
    }
    if (!claimer.queues.empty() && !Contains(claimer.queues, task.queue)) {
        reasons.push_back({Condition::kQueueNotServed, "queue " + base::Quoted(task.queue)});
    }
    // Without a session it is the general question; then no types means any type.
    bool any_type = !claimer.session.valid() && claimer.types.empty();
    if (!any_type && !Contains(claimer.types, task.type)) {
        reasons.push_back({Condition::kTypeNotHandled, "type " + base::Quoted(task.type)});
    }
    if (task.cancel_requested) reasons.push_back({Condition::kCancelRequested, {}});
    if (task.suspect && !claimer.suspect) reasons.push_back({Condition::kSuspectMustBeAlone, {}});
    if (claimer.session.valid() && !scene.session_live) {
        reasons.push_back({Condition::kSessionNotLive, {}});
    }
    if (reasons.empty()) reasons.push_back({Condition::kEligible, {}});
    return reasons;
}

}  // namespace

std::vector<Explanation> PostgresStore::Explain(TaskId id, const ClaimRequest& claimer) {
    std::optional<TaskRecord> task = Get(id);
    if (!task) return {};
    Scene scene{claimer, Now(), false, false};
    for (const QueueRecord& queue : Queues()) {
        if (queue.settings.name == task->queue) scene.queue_paused = queue.settings.paused;
    }
    for (const SessionRecord& session : Sessions()) {
        bool live =
            session.state == SessionState::kLive || session.state == SessionState::kDraining;
        if (session.id == claimer.session) scene.session_live = live;
    }
    return Reasons(*task, scene);
}

}  // namespace stint::store::pg
