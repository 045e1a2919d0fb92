#include "sim/faulty_store.h"

#include <type_traits>

namespace stint::sim {

using store::CommitUnknown;
using store::Unavailable;

namespace {
constexpr Virtual kQuick = std::chrono::milliseconds{2};
constexpr Virtual kStall = std::chrono::milliseconds{2'500};  // most of a lease
constexpr Virtual kLate = std::chrono::milliseconds{1'400};   // and yet no reason to give up
}  // namespace

void FaultyStore::Delay() {
    // Log-like: most calls are quick, a slow one may outlast several leases.
    if (faults_.Strikes(Fault::kSlow)) {
        world_.Sleep(world_.Between(kQuick, faults_.slow_max()));
    } else if (world_.random().Below(4) == 0) {
        world_.Sleep(world_.Between(Virtual{10'000}, kQuick));
    }
}

void FaultyStore::Travel(std::string_view name, Effect effect) {
    world_.Point(name);
    Delay();
    // A dead process that cleans up behind itself reaches nobody.
    if (world_.process().dead()) throw Unavailable("simulated: this process is dead");
    if (faults_.store_down()) {
        world_.Sleep(world_.Between(kQuick, std::chrono::milliseconds{200}));
        throw Unavailable("simulated: the store is down");
    }
    if (faults_.loses_requests(world_.process()) && world_.random().Below(16) != 0) {
        world_.Sleep(world_.Between(kQuick, kStall));
        throw Unavailable("simulated: the link is bad");
    }
    if (faults_.Strikes(Fault::kErrorBefore)) throw Unavailable("simulated: refused");
    if (effect == Effect::kWrites && faults_.Strikes(Fault::kUnknownNotDone)) {
        throw CommitUnknown("simulated: the request was lost");
    }
}

void FaultyStore::TravelBack(std::string_view name, Effect effect) {
    world_.Point(name);
    Delay();
    if (faults_.answers_late(world_.process())) world_.Sleep(world_.Between(kQuick, kLate));
    if (!faults_.Strikes(Fault::kUnknownDone)) return;
    if (effect == Effect::kWrites) throw CommitUnknown("simulated: the answer was lost");
    throw Unavailable("simulated: the answer was lost");
}

template <class F>
auto FaultyStore::Reach(std::string_view name, Effect effect, Call as, F&& call) {
    // What the store does is one transaction: no points inside. The oracle hears of it before the
    // answer can be lost.
    auto reach = [&] {
        World::Shelter shelter;
        struct Telling {
            Oracle& oracle;
            ~Telling() { oracle.End(); }
        } telling{oracle_};
        oracle_.Begin(as);
        return call();
    };
    try {
        Travel(name, effect);
    } catch (const Crash&) {
        // Sent before its sender died: it may still arrive, and nobody will read the answer.
        if (effect == Effect::kWrites && !world_.stopped() &&
            faults_.Strikes(Fault::kLateArrival)) {
            (void)reach();
        }
        throw;
    }
    if constexpr (std::is_void_v<decltype(call())>) {
        reach();
        TravelBack(name, effect);
    } else {
        auto reply = reach();
        TravelBack(name, effect);
        return reply;
    }
}

template <class F>
auto FaultyStore::Reads(std::string_view name, F&& call) {
    return Reach(name, Effect::kReads, Call::kNone, std::forward<F>(call));
}

template <class F>
auto FaultyStore::Writes(std::string_view name, Call as, F&& call) {
    return Reach(name, Effect::kWrites, as, std::forward<F>(call));
}

namespace {

// Tells the oracle what is asked inside a transaction; what was submitted, only once it committed.
class WitnessedTransaction final : public store::Transaction {
public:
    WitnessedTransaction(store::Transaction& inner, Oracle& oracle)
        : inner_(inner), oracle_(oracle) {}

    std::vector<store::SubmitReply> Submit(std::span<const model::NewTask> tasks) override {
        auto replies = inner_.Submit(tasks);
        submitted_.emplace_back(std::vector(tasks.begin(), tasks.end()), replies);
        return replies;
    }
    store::SettleReply Settle(const store::Settlement& settlement) override {
        oracle_.BeforeSettle({&settlement, 1});
        store::SettleReply reply = inner_.Settle(settlement);
        oracle_.AfterSettle({&settlement, 1}, {&reply, 1});
        return reply;
    }
    void* native() override { return inner_.native(); }

    using Submitted = std::pair<std::vector<model::NewTask>, std::vector<store::SubmitReply>>;
    const std::vector<Submitted>& submitted() const { return submitted_; }

private:
    store::Transaction& inner_;
    Oracle& oracle_;
    std::vector<Submitted> submitted_;
};

}  // namespace

store::StoreInfo FaultyStore::Info() {
    return inner_.Info();
}
Time FaultyStore::Now() {
    return Reads("store.now", [&] { return inner_.Now(); });
}
TaskId FaultyStore::ReserveIds(int count) {
    // A block whose answer was lost is a gap in the numbers, no more; the store may still say that
    // it does not know.
    return Writes("store.reserve_ids", Call::kNone, [&] { return inner_.ReserveIds(count); });
}
void FaultyStore::PublishTypes(std::span<const model::TypeDefaults> types) {
    Writes("store.publish_types", Call::kPublish, [&] {
        inner_.PublishTypes(types);
        oracle_.AfterPublish();
    });
}
std::vector<model::TypeRecord> FaultyStore::Types() {
    return Reads("store.types", [&] { return inner_.Types(); });
}
std::vector<store::SubmitReply> FaultyStore::Submit(std::span<const model::NewTask> tasks) {
    return Writes("store.submit", Call::kSubmit, [&] {
        auto replies = inner_.Submit(tasks);
        oracle_.AfterSubmit(tasks, replies);
        return replies;
    });
}
std::vector<store::SubmitReply> FaultyStore::SubmitAll(std::span<const model::NewTask> tasks) {
    return Writes("store.submit_all", Call::kSubmit, [&] {
        auto replies = inner_.SubmitAll(tasks);
        oracle_.AfterSubmit(tasks, replies);
        return replies;
    });
}
NodeId FaultyStore::OpenSession(const store::NewSession& session) {
    return Writes("store.open_session", Call::kSession, [&] {
        NodeId node = inner_.OpenSession(session);
        oracle_.AfterOpen(session);
        return node;
    });
}
store::RenewReply FaultyStore::Renew(const store::RenewRequest& request) {
    return Writes("store.renew", Call::kSession, [&] {
        auto reply = inner_.Renew(request);
        oracle_.AfterRenew(request, reply);
        return reply;
    });
}
void FaultyStore::CloseSession(SessionId session) {
    Writes("store.close_session", Call::kSession, [&] {
        inner_.CloseSession(session);
        oracle_.AfterClose(session);
    });
}
std::vector<model::SessionRecord> FaultyStore::Sessions() {
    return Reads("store.sessions", [&] { return inner_.Sessions(); });
}
std::vector<model::NodeRecord> FaultyStore::Nodes() {
    return Reads("store.nodes", [&] { return inner_.Nodes(); });
}
store::ClaimReply FaultyStore::Claim(const store::ClaimRequest& request) {
    return Writes("store.claim", Call::kClaim, [&] {
        auto reply = inner_.Claim(request);
        oracle_.AfterClaim(request, reply);
        return reply;
    });
}
std::vector<store::SettleReply> FaultyStore::Settle(std::span<const store::Settlement> settlements
) {
    return Writes("store.settle", Call::kSettle, [&] {
        oracle_.BeforeSettle(settlements);
        auto replies = inner_.Settle(settlements);
        oracle_.AfterSettle(settlements, replies);
        return replies;
    });
}
store::ReclaimReply FaultyStore::Reclaim(const store::ReclaimRequest& request) {
    return Writes("store.reclaim", Call::kReclaim, [&] {
        auto reply = inner_.Reclaim(request);
        oracle_.AfterReclaim(reply);
        return reply;
    });
}
Result<model::State> FaultyStore::FinishBackground(const store::BackgroundFinish& finish) {
    return Writes("store.finish_background", Call::kFinish, [&] {
        oracle_.BeforeFinish(finish);
        auto reply = inner_.FinishBackground(finish);
        oracle_.AfterFinish(finish, reply);
        return reply;
    });
}
std::optional<store::SettleReply> FaultyStore::SettledBy(TaskId task, LeaseToken token) {
    return Reads("store.settled_by", [&] { return inner_.SettledBy(task, token); });
}
std::vector<store::CancelReply> FaultyStore::Cancel(
    std::span<const TaskId> tasks, std::string_view actor, std::string_view reason
) {
    return Writes("store.cancel", Call::kCancel, [&] {
        auto replies = inner_.Cancel(tasks, actor, reason);
        oracle_.AfterCancel(tasks, replies);
        return replies;
    });
}
std::vector<store::RetryReply> FaultyStore::Retry(
    std::span<const TaskId> tasks, std::string_view actor
) {
    return Writes("store.retry", Call::kRetry, [&] { return inner_.Retry(tasks, actor); });
}
std::vector<store::RetryReply> FaultyStore::Discard(
    std::span<const TaskId> tasks, std::string_view actor
) {
    return Writes("store.discard", Call::kDiscard, [&] { return inner_.Discard(tasks, actor); });
}
Result<void> FaultyStore::Edit(TaskId task, const model::TaskEdit& edit, std::string_view actor) {
    return Writes("store.edit", Call::kEdit, [&] { return inner_.Edit(task, edit, actor); });
}
std::optional<model::TaskRecord> FaultyStore::Get(TaskId task) {
    return Reads("store.get", [&] { return inner_.Get(task); });
}
std::optional<TaskId> FaultyStore::FindByIdempotencyKey(TenantId tenant, std::string_view key) {
    return Reads("store.find_key", [&] { return inner_.FindByIdempotencyKey(tenant, key); });
}
model::TaskPage FaultyStore::List(const store::ListRequest& request) {
    return Reads("store.list", [&] { return inner_.List(request); });
}
std::map<model::CountKey, std::int64_t> FaultyStore::Counts(const model::TaskFilter& filter) {
    return Reads("store.counts", [&] { return inner_.Counts(filter); });
}
std::vector<model::AttemptRecord> FaultyStore::Attempts(TaskId task) {
    return Reads("store.attempts", [&] { return inner_.Attempts(task); });
}
std::vector<model::AuditEntry> FaultyStore::Audit(const store::AuditRequest& request) {
    return Reads("store.audit", [&] { return inner_.Audit(request); });
}
std::vector<model::WaitMember> FaultyStore::Waited(TaskId task) {
    return Reads("store.waited", [&] { return inner_.Waited(task); });
}
std::vector<store::FinishedTask> FaultyStore::Finished(std::span<const TaskId> tasks) {
    return Reads("store.finished", [&] { return inner_.Finished(tasks); });
}
std::vector<store::Explanation> FaultyStore::Explain(
    TaskId task, const store::ClaimRequest& claimer
) {
    return Reads("store.explain", [&] { return inner_.Explain(task, claimer); });
}
std::vector<store::Crowd> FaultyStore::Crowds(const std::string& queue) {
    return Reads("store.crowds", [&] { return inner_.Crowds(queue); });
}
std::optional<model::QueueSettings> FaultyStore::ChangeQueue(
    const model::QueueChange& change, std::string_view actor
) {
    return Writes("store.change_queue", Call::kNone, [&] {
        return inner_.ChangeQueue(change, actor);
    });
}
std::vector<model::QueueRecord> FaultyStore::Queues() {
    return Reads("store.queues", [&] { return inner_.Queues(); });
}
store::HousekeepReply FaultyStore::Housekeep(const store::HousekeepRequest& request) {
    return Writes("store.housekeep", Call::kHousekeep, [&] { return inner_.Housekeep(request); });
}
std::vector<store::CheckFinding> FaultyStore::Check() {
    return Reads("store.check", [&] { return inner_.Check(); });
}
Result<void> FaultyStore::Write(const std::function<Result<void>(store::Transaction&)>& work) {
    return Writes("store.write", Call::kWrite, [&] {
        std::vector<WitnessedTransaction::Submitted> submitted;
        Result<void> result = inner_.Write([&](store::Transaction& transaction) {
            WitnessedTransaction witnessed(transaction, oracle_);
            Result<void> done = work(witnessed);
            submitted = witnessed.submitted();
            return done;
        });
        oracle_.AfterWrite(result.has_value());
        if (result) {
            for (const auto& [tasks, replies] : submitted) oracle_.AfterSubmit(tasks, replies);
        }
        return result;
    });
}
void FaultyStore::AroundRead(std::string_view name, const std::function<void()>& call) {
    Reads(name, call);
}
void FaultyStore::AroundWrite(std::string_view name, Call as, const std::function<void()>& call) {
    Writes(name, as, call);
}
Result<std::unique_ptr<store::Transaction>> FaultyStore::Borrow(void* native_connection) {
    return inner_.Borrow(native_connection);
}

// ---- events ----

std::vector<store::PublishReply> FaultyEvents::Publish(std::span<const model::NewEvent> events) {
    return store_.Writes("events.publish", Call::kNone, [&] {
        return store_.inner_.Events().Publish(events);
    });
}
Result<model::WorkflowRecord> FaultyEvents::PutWorkflow(
    const model::WorkflowDefinition& definition, std::string_view actor
) {
    return store_.Writes("events.put_workflow", Call::kNone, [&] {
        return store_.inner_.Events().PutWorkflow(definition, actor);
    });
}
bool FaultyEvents::RemoveWorkflow(TenantId tenant, std::string_view name) {
    return store_.Writes("events.remove_workflow", Call::kNone, [&] {
        return store_.inner_.Events().RemoveWorkflow(tenant, name);
    });
}
std::vector<model::WorkflowRecord> FaultyEvents::Workflows() {
    return store_.Reads("events.workflows", [&] { return store_.inner_.Events().Workflows(); });
}
store::NextEventsReply FaultyEvents::NextEvents(const store::NextEventsRequest& request) {
    return store_.Writes("events.next", Call::kNone, [&] {
        return store_.inner_.Events().NextEvents(request);
    });
}
std::vector<store::FireReply> FaultyEvents::Fire(std::span<const store::EventOutcome> outcomes) {
    return store_.Writes("events.fire", Call::kSubmit, [&] {
        auto replies = store_.inner_.Events().Fire(outcomes);
        store_.oracle_.AfterSubmit({}, {});
        return replies;
    });
}
std::optional<model::EventRecord> FaultyEvents::GetEvent(EventNo event) {
    return store_.Reads("events.get", [&] { return store_.inner_.Events().GetEvent(event); });
}
std::vector<model::EventRecord> FaultyEvents::ListEvents(const store::EventFilter& filter) {
    return store_.Reads("events.list", [&] { return store_.inner_.Events().ListEvents(filter); });
}
std::map<store::EventCountKey, std::int64_t> FaultyEvents::CountEvents() {
    return store_.Reads("events.count", [&] { return store_.inner_.Events().CountEvents(); });
}
std::vector<store::FiringRecord> FaultyEvents::Firings(const store::FiringFilter& filter) {
    return store_.Reads("events.firings", [&] { return store_.inner_.Events().Firings(filter); });
}
std::vector<model::JoinInstance> FaultyEvents::Joins(const store::JoinFilter& filter) {
    return store_.Reads("events.joins", [&] { return store_.inner_.Events().Joins(filter); });
}
store::TidyReply FaultyEvents::Tidy(const store::TidyRequest& request) {
    return store_.Writes("events.tidy", Call::kNone, [&] {
        return store_.inner_.Events().Tidy(request);
    });
}

}  // namespace stint::sim
