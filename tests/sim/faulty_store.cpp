#include "sim/faulty_store.h"

#include <type_traits>

namespace stint::sim {

using store::CommitUnknown;
using store::Unavailable;

namespace {
constexpr Virtual kQuick = std::chrono::milliseconds{2};
}

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
    if (faults_.Strikes(Fault::kErrorBefore)) throw Unavailable("simulated: refused");
    if (effect == Effect::kWrites && faults_.Strikes(Fault::kUnknownNotDone)) {
        throw CommitUnknown("simulated: the request was lost");
    }
}

void FaultyStore::TravelBack(std::string_view name, Effect effect) {
    world_.Point(name);
    Delay();
    if (!faults_.Strikes(Fault::kUnknownDone)) return;
    if (effect == Effect::kWrites) throw CommitUnknown("simulated: the answer was lost");
    throw Unavailable("simulated: the answer was lost");
}

template <class F>
auto FaultyStore::Call(std::string_view name, Effect effect, F&& call) {
    // What the store does is one transaction: no points inside.
    auto reach = [&] {
        World::Shelter shelter;
        return call();
    };
    try {
        Travel(name, effect);
    } catch (const Crash&) {
        // Sent before its sender died: it may still arrive, and nobody will read the answer.
        if (effect == Effect::kWrites && !world_.stopped() &&
            faults_.Strikes(Fault::kLateArrival)) {
            reach();
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

store::StoreInfo FaultyStore::Info() {
    return inner_.Info();
}
Time FaultyStore::Now() {
    return Call("store.now", Effect::kReads, [&] { return inner_.Now(); });
}
TaskId FaultyStore::ReserveIds(int count) {
    // A block whose answer was lost is a gap in the numbers, no more: a refusal, not an unknown.
    return Call("store.reserve_ids", Effect::kReads, [&] { return inner_.ReserveIds(count); });
}
void FaultyStore::PublishTypes(std::span<const model::TypeDefaults> types) {
    Call("store.publish_types", Effect::kWrites, [&] { inner_.PublishTypes(types); });
}
std::vector<model::TypeRecord> FaultyStore::Types() {
    return Call("store.types", Effect::kReads, [&] { return inner_.Types(); });
}
std::vector<store::SubmitReply> FaultyStore::Submit(std::span<const model::NewTask> tasks) {
    return Call("store.submit", Effect::kWrites, [&] { return inner_.Submit(tasks); });
}
NodeId FaultyStore::OpenSession(const store::NewSession& session) {
    return Call("store.open_session", Effect::kWrites, [&] { return inner_.OpenSession(session); });
}
store::RenewReply FaultyStore::Renew(const store::RenewRequest& request) {
    return Call("store.renew", Effect::kWrites, [&] { return inner_.Renew(request); });
}
void FaultyStore::CloseSession(SessionId session) {
    Call("store.close_session", Effect::kWrites, [&] { inner_.CloseSession(session); });
}
std::vector<model::SessionRecord> FaultyStore::Sessions() {
    return Call("store.sessions", Effect::kReads, [&] { return inner_.Sessions(); });
}
std::vector<model::NodeRecord> FaultyStore::Nodes() {
    return Call("store.nodes", Effect::kReads, [&] { return inner_.Nodes(); });
}
store::ClaimReply FaultyStore::Claim(const store::ClaimRequest& request) {
    return Call("store.claim", Effect::kWrites, [&] { return inner_.Claim(request); });
}
std::vector<store::SettleReply> FaultyStore::Settle(std::span<const store::Settlement> settlements
) {
    return Call("store.settle", Effect::kWrites, [&] { return inner_.Settle(settlements); });
}
store::ReclaimReply FaultyStore::Reclaim(const store::ReclaimRequest& request) {
    return Call("store.reclaim", Effect::kWrites, [&] { return inner_.Reclaim(request); });
}
Result<model::State> FaultyStore::FinishBackground(const store::BackgroundFinish& finish) {
    return Call("store.finish_background", Effect::kWrites, [&] {
        return inner_.FinishBackground(finish);
    });
}
std::optional<store::SettleReply> FaultyStore::SettledBy(TaskId task, LeaseToken token) {
    return Call("store.settled_by", Effect::kReads, [&] { return inner_.SettledBy(task, token); });
}
std::vector<store::CancelReply> FaultyStore::Cancel(
    std::span<const TaskId> tasks, std::string_view actor, std::string_view reason
) {
    return Call("store.cancel", Effect::kWrites, [&] {
        return inner_.Cancel(tasks, actor, reason);
    });
}
std::vector<store::RetryReply> FaultyStore::Retry(
    std::span<const TaskId> tasks, std::string_view actor
) {
    return Call("store.retry", Effect::kWrites, [&] { return inner_.Retry(tasks, actor); });
}
std::vector<store::RetryReply> FaultyStore::Discard(
    std::span<const TaskId> tasks, std::string_view actor
) {
    return Call("store.discard", Effect::kWrites, [&] { return inner_.Discard(tasks, actor); });
}
Result<void> FaultyStore::Edit(TaskId task, const model::TaskEdit& edit, std::string_view actor) {
    return Call("store.edit", Effect::kWrites, [&] { return inner_.Edit(task, edit, actor); });
}
std::optional<model::TaskRecord> FaultyStore::Get(TaskId task) {
    return Call("store.get", Effect::kReads, [&] { return inner_.Get(task); });
}
std::optional<TaskId> FaultyStore::FindByIdempotencyKey(TenantId tenant, std::string_view key) {
    return Call("store.find_key", Effect::kReads, [&] {
        return inner_.FindByIdempotencyKey(tenant, key);
    });
}
model::TaskPage FaultyStore::List(const store::ListRequest& request) {
    return Call("store.list", Effect::kReads, [&] { return inner_.List(request); });
}
std::map<model::CountKey, std::int64_t> FaultyStore::Counts(const model::TaskFilter& filter) {
    return Call("store.counts", Effect::kReads, [&] { return inner_.Counts(filter); });
}
std::vector<model::AttemptRecord> FaultyStore::Attempts(TaskId task) {
    return Call("store.attempts", Effect::kReads, [&] { return inner_.Attempts(task); });
}
std::vector<model::AuditEntry> FaultyStore::Audit(const store::AuditRequest& request) {
    return Call("store.audit", Effect::kReads, [&] { return inner_.Audit(request); });
}
std::vector<store::FinishedTask> FaultyStore::Finished(std::span<const TaskId> tasks) {
    return Call("store.finished", Effect::kReads, [&] { return inner_.Finished(tasks); });
}
std::vector<store::Explanation> FaultyStore::Explain(
    TaskId task, const store::ClaimRequest& claimer
) {
    return Call("store.explain", Effect::kReads, [&] { return inner_.Explain(task, claimer); });
}
void FaultyStore::SetQueue(const model::QueueSettings& settings, std::string_view actor) {
    Call("store.set_queue", Effect::kWrites, [&] { inner_.SetQueue(settings, actor); });
}
std::vector<model::QueueRecord> FaultyStore::Queues() {
    return Call("store.queues", Effect::kReads, [&] { return inner_.Queues(); });
}
store::HousekeepReply FaultyStore::Housekeep(const store::HousekeepRequest& request) {
    return Call("store.housekeep", Effect::kWrites, [&] { return inner_.Housekeep(request); });
}
std::vector<store::CheckFinding> FaultyStore::Check() {
    return Call("store.check", Effect::kReads, [&] { return inner_.Check(); });
}
Result<void> FaultyStore::Write(const std::function<Result<void>(store::Transaction&)>& work) {
    return Call("store.write", Effect::kWrites, [&] { return inner_.Write(work); });
}
Result<std::unique_ptr<store::Transaction>> FaultyStore::Borrow(void* native_connection) {
    return inner_.Borrow(native_connection);
}

}  // namespace stint::sim
