#include "store/memory/memory_store.h"

#include <mutex>
#include <utility>

#include "base/planted_bug.h"
#include "base/result.h"
#include "base/test_point.h"
#include "store/memory/data.h"
#include "store/memory/event_store.h"
#include "store/memory/flows.h"
#include "store/memory/ops.h"
#include "store/memory/resource_store.h"
#include "store/memory/results.h"
#include "store/memory/schedules.h"

namespace stint::store {

using memory::Data;
using memory::Ops;
using StoreId = RandomId<struct StoreIdTag>;

struct MemoryStore::Impl {
    Impl(base::Clock& the_clock, base::Random& the_random) : clock(the_clock), random(the_random) {}

    Ops OpsNow() { return Ops(data, random, clock.WallTime(), commits); }

    void Commit() {
        std::vector<CommittedTransition> committed = std::exchange(commits, {});
        if (!listener) return;
        for (const CommittedTransition& transition : committed) listener(transition);
    }

    // One operation: one transaction.
    template <class Work>
    auto Run(Work&& work) {
        std::lock_guard guard(mutex);
        Ops ops = OpsNow();
        if constexpr (std::is_void_v<decltype(work(ops))>) {
            work(ops);
            Commit();
        } else {
            auto reply = work(ops);
            Commit();
            return reply;
        }
    }

    template <class Work>
    auto RunScheduling(Work&& work) {
        std::lock_guard guard(mutex);
        Time now = clock.WallTime();
        Ops ops(data, random, now, commits);
        memory::ScheduleOps scheduling_now(data, ops, now);
        auto reply = work(scheduling_now);
        Commit();
        return reply;
    }

    base::Clock& clock;
    base::Random& random;  // guarded by mutex
    // Not from `random`: two stores of one seed are two stores.
    const std::string identity = base::SystemRandom().MakeId<StoreId>().ToString();
    std::mutex mutex;
    Data data;                                 // guarded by mutex
    std::vector<CommittedTransition> commits;  // of the running operation; guarded by mutex
    std::function<void(const CommittedTransition&)> listener;  // guarded by mutex
    class Scheduling;
    std::unique_ptr<Scheduling> scheduling;
    memory::EventDoor events{[this](const std::function<void(memory::EventOps&)>& work) {
        std::lock_guard guard(mutex);
        Ops ops = OpsNow();
        memory::EventOps event_ops(ops, data, ops.now());
        work(event_ops);
        Commit();
    }};
    memory::FlowDoor flows{[this](const std::function<void(Ops&, Data&)>& work) {
        std::lock_guard guard(mutex);
        Ops ops = OpsNow();
        work(ops, data);
        Commit();
    }};
    memory::ResourceDoor resources{[this](const std::function<void(Ops&)>& work) {
        std::lock_guard guard(mutex);
        Ops ops = OpsNow();
        work(ops);
        Commit();
    }};
    memory::ResultDoor results{[this](const std::function<void(Ops&, memory::ResultData&)>& work) {
        std::lock_guard guard(mutex);
        Ops ops = OpsNow();
        work(ops, data.results);
        Commit();
    }};
};

class MemoryStore::Impl::Scheduling final : public ScheduleStore {
    Impl& impl_;

    template <class Work>
    auto Run(Work&& work) {
        return impl_.RunScheduling(work);
    }
    template <class One, class Work>
    std::vector<FiringReply> Each(std::span<const One> firings, Work work) {
        return Run([&](auto& ops) {
            std::vector<FiringReply> replies;
            for (const One& one : firings) replies.push_back(work(ops, one));
            return replies;
        });
    }

public:
    explicit Scheduling(Impl& impl) : impl_(impl) {}

    Result<Schedule> Put(const SchedulePut& put) override {
        return Run([&](auto& ops) { return ops.Put(put); });
    }
    std::optional<Schedule> Get(TenantId tenant, std::string_view name) override {
        return Run([&](auto& ops) { return ops.Get(tenant, name); });
    }
    std::vector<Schedule> List(const ScheduleListRequest& request) override {
        return Run([&](auto& ops) { return ops.List(request); });
    }
    bool Remove(TenantId tenant, std::string_view name) override {
        return Run([&](auto& ops) { return ops.Remove(tenant, name); });
    }
    std::optional<Schedule> SetPaused(
        TenantId tenant, std::string_view name, bool paused, std::string_view actor
    ) override {
        return Run([&](auto& ops) { return ops.SetPaused(tenant, name, paused, actor); });
    }
    DueReply Due(int schedules, int visits) override {
        return Run([&](auto& ops) { return ops.Due(schedules, visits); });
    }
    std::vector<FiringReply> Fire(std::span<const Firing> firings) override {
        return Each(firings, [](auto& ops, const Firing& one) { return ops.Fire(one); });
    }
    std::vector<FiringReply> FireVisits(std::span<const VisitFiring> firings) override {
        return Each(firings, [](auto& ops, const VisitFiring& one) { return ops.FireVisit(one); });
    }
    std::vector<ScheduleRun> Runs(const RunsRequest& request) override {
        return Run([&](auto& ops) { return ops.Runs(request); });
    }
    int ForgetRuns(int limit) override {
        return Run([&](auto& ops) { return ops.ForgetRuns(limit); });
    }
    void PutCalendar(const Calendar& calendar) override {
        Run([&](auto& ops) { return ops.PutCalendar(calendar), 0; });
    }
    std::vector<Calendar> Calendars(TenantId tenant) override {
        return Run([&](auto& ops) { return ops.Calendars(tenant); });
    }
    bool RemoveCalendar(TenantId tenant, std::string_view name) override {
        return Run([&](auto& ops) { return ops.RemoveCalendar(tenant, name); });
    }
    Result<void> PutVisits(ScheduleId schedule, std::span<const VisitPut> visits) override {
        return Run([&](auto& ops) { return ops.PutVisits(schedule, visits); });
    }
    int RemoveVisits(ScheduleId schedule, std::span<const std::string> entities) override {
        return Run([&](auto& ops) { return ops.RemoveVisits(schedule, entities); });
    }
    std::vector<Visit> Visits(const VisitsRequest& request) override {
        return Run([&](auto& ops) { return ops.Visits(request); });
    }
};

namespace {

class MemoryTransaction final : public Transaction {
public:
    explicit MemoryTransaction(std::function<Ops()> ops) : ops_(std::move(ops)) {}
    std::vector<SubmitReply> Submit(std::span<const NewTask> tasks) override {
        return ops_().Submit(tasks);
    }
    SettleReply Settle(const Settlement& settlement) override { return ops_().Settle(settlement); }
    void* native() override { return nullptr; }

private:
    const std::function<Ops()> ops_;  // at the instant of each call
};

}  // namespace

MemoryStore::MemoryStore(base::Clock& clock, base::Random& random)
    : impl_(std::make_unique<Impl>(clock, random)) {
    impl_->scheduling = std::make_unique<Impl::Scheduling>(*impl_);
}
MemoryStore::~MemoryStore() = default;

void MemoryStore::SetCommitListener(std::function<void(const CommittedTransition&)> listener) {
    std::lock_guard guard(impl_->mutex);
    impl_->listener = std::move(listener);
}

StoreInfo MemoryStore::Info() {
    return {
        .kind = "memory",
        .address = "memory:",
        .version = "1",
        .schema = 0,
        .durability = "Nothing survives the end of the process.",
        .shared = false,
        .identity = impl_->identity,
    };
}

Time MemoryStore::Now() {
    return impl_->clock.WallTime();
}

TaskId MemoryStore::ReserveIds(int count) {
    return impl_->Run([&](Ops& ops) { return ops.ReserveIds(count); });
}

void MemoryStore::PublishTypes(std::span<const TypeDefaults> types) {
    impl_->Run([&](Ops& ops) { ops.PublishTypes(types); });
}

std::vector<TypeRecord> MemoryStore::Types() {
    std::lock_guard guard(impl_->mutex);
    std::vector<TypeRecord> types;
    for (const auto& [name, record] : impl_->data.types) types.push_back(record);
    return types;
}

std::vector<SubmitReply> MemoryStore::Submit(std::span<const NewTask> tasks) {
    return impl_->Run([&](Ops& ops) { return ops.Submit(tasks); });
}

std::vector<SubmitReply> MemoryStore::SubmitAll(std::span<const NewTask> tasks) {
    return impl_->Run([&](Ops& ops) { return ops.SubmitAll(tasks); });
}

NodeId MemoryStore::OpenSession(const NewSession& session) {
    return impl_->Run([&](Ops& ops) { return ops.OpenSession(session); });
}

RenewReply MemoryStore::Renew(const RenewRequest& request) {
    return impl_->Run([&](Ops& ops) { return ops.Renew(request); });
}

void MemoryStore::CloseSession(SessionId session) {
    impl_->Run([&](Ops& ops) { ops.CloseSession(session); });
}

std::vector<SessionRecord> MemoryStore::Sessions() {
    return impl_->Run([&](Ops& ops) { return ops.Sessions(); });
}

std::vector<NodeRecord> MemoryStore::Nodes() {
    std::lock_guard guard(impl_->mutex);
    std::vector<NodeRecord> nodes;
    for (const auto& [hostname, record] : impl_->data.nodes) nodes.push_back(record);
    return nodes;
}

ClaimReply MemoryStore::Claim(const ClaimRequest& request) {
    return impl_->Run([&](Ops& ops) { return ops.Claim(request); });
}

std::vector<SettleReply> MemoryStore::Settle(std::span<const Settlement> settlements) {
    return impl_->Run([&](Ops& ops) {
        std::vector<SettleReply> replies;
        for (const Settlement& settlement : settlements) replies.push_back(ops.Settle(settlement));
        return replies;
    });
}

ReclaimReply MemoryStore::Reclaim(const ReclaimRequest& request) {
    ReclaimReply reply;
    std::unique_lock lock(impl_->mutex);
    std::vector<Ops::Doomed> doomed = impl_->OpsNow().FindDoomed(request, reply);
    if (base::Planted(base::Bug::kUnguardedReclaim)) {
        impl_->Commit();
        lock.unlock();
        base::TestPoint("memory.reclaim_between");
        lock.lock();
    }
    Ops ops = impl_->OpsNow();
    for (const Ops::Doomed& one : doomed) ops.MoveDoomed(one, request, reply);
    impl_->Commit();
    return reply;
}

Result<State> MemoryStore::FinishBackground(const BackgroundFinish& finish) {
    return impl_->Run([&](Ops& ops) { return ops.FinishBackground(finish); });
}

std::optional<SettleReply> MemoryStore::SettledBy(TaskId task, LeaseToken token) {
    return impl_->Run([&](Ops& ops) { return ops.SettledBy(task, token); });
}

std::vector<CancelReply> MemoryStore::Cancel(
    std::span<const TaskId> tasks, std::string_view actor, std::string_view reason
) {
    return impl_->Run([&](Ops& ops) {
        std::vector<CancelReply> replies;
        for (TaskId task : tasks) replies.push_back(ops.CancelTree(task, actor, reason));
        return replies;
    });
}

std::vector<RetryReply> MemoryStore::Retry(std::span<const TaskId> tasks, std::string_view actor) {
    return impl_->Run([&](Ops& ops) {
        std::vector<RetryReply> replies;
        for (TaskId task : tasks) replies.push_back(ops.Retry(task, actor));
        return replies;
    });
}

std::vector<RetryReply> MemoryStore::Discard(
    std::span<const TaskId> tasks, std::string_view actor
) {
    return impl_->Run([&](Ops& ops) {
        std::vector<RetryReply> replies;
        for (TaskId task : tasks) replies.push_back(ops.Discard(task, actor));
        return replies;
    });
}

Result<void> MemoryStore::Edit(TaskId task, const TaskEdit& edit, std::string_view actor) {
    return impl_->Run([&](Ops& ops) { return ops.Edit(task, edit, actor); });
}

std::optional<TaskRecord> MemoryStore::Get(TaskId task) {
    return impl_->Run([&](Ops& ops) { return ops.Get(task); });
}

std::optional<TaskId> MemoryStore::FindByIdempotencyKey(TenantId tenant, std::string_view key) {
    return impl_->Run([&](Ops& ops) { return ops.FindByIdempotencyKey(tenant, key); });
}

TaskPage MemoryStore::List(const ListRequest& request) {
    return impl_->Run([&](Ops& ops) { return ops.List(request); });
}

std::map<CountKey, std::int64_t> MemoryStore::Counts(const TaskFilter& filter) {
    return impl_->Run([&](Ops& ops) { return ops.Counts(filter); });
}

std::vector<AttemptRecord> MemoryStore::Attempts(TaskId task) {
    return impl_->Run([&](Ops& ops) { return ops.Attempts(task); });
}

std::vector<WaitMember> MemoryStore::Waited(TaskId task) {
    return impl_->Run([&](Ops& ops) { return ops.Waited(task); });
}

std::vector<AuditEntry> MemoryStore::Audit(const AuditRequest& request) {
    return impl_->Run([&](Ops& ops) { return ops.Audit(request); });
}

std::vector<FinishedTask> MemoryStore::Finished(std::span<const TaskId> tasks) {
    return impl_->Run([&](Ops& ops) { return ops.Finished(tasks); });
}

std::vector<Explanation> MemoryStore::Explain(TaskId task, const ClaimRequest& claimer) {
    return impl_->Run([&](Ops& ops) { return ops.Explain(task, claimer); });
}

std::vector<Crowd> MemoryStore::Crowds(const std::string& queue) {
    return impl_->Run([&](Ops& ops) { return ops.Crowds(queue); });
}

std::optional<QueueSettings> MemoryStore::ChangeQueue(
    const QueueChange& change, std::string_view actor
) {
    return impl_->Run([&](Ops& ops) { return ops.ChangeQueue(change, actor); });
}

std::vector<QueueRecord> MemoryStore::Queues() {
    return impl_->Run([&](Ops& ops) { return ops.Queues(); });
}

EventStore& MemoryStore::Events() {
    return impl_->events;
}

FlowStore& MemoryStore::Flows() {
    return impl_->flows;
}

HousekeepReply MemoryStore::Housekeep(const HousekeepRequest& request) {
    HousekeepReply reply = impl_->Run([&](Ops& ops) { return ops.Housekeep(request); });
    if (request.history) reply.more |= impl_->flows.Tidy(request.limit) >= request.limit;
    return reply;
}

std::vector<CheckFinding> MemoryStore::Check() {
    return impl_->Run([&](Ops& ops) { return ops.Check(); });
}

Result<void> MemoryStore::Write(const std::function<Result<void>(Transaction&)>& work) {
    std::lock_guard guard(impl_->mutex);
    Data before = impl_->data;
    auto roll_back = [&] {
        before.next_id = impl_->data.next_id;  // ids are never given out again
        impl_->data = std::move(before);
        impl_->commits.clear();
    };
    MemoryTransaction transaction([this] { return impl_->OpsNow(); });
    try {
        Result<void> done = work(transaction);
        if (done) {
            impl_->Commit();
        } else {
            roll_back();
        }
        return done;
    } catch (...) {
        roll_back();
        throw;
    }
}

Result<std::unique_ptr<Transaction>> MemoryStore::Borrow(void*) {
    return base::MakeError(
        Code::kInvalid,
        "the memory store has no connections to borrow; write through Write() instead"
    );
}

ResourceStore& MemoryStore::Resources() {
    return impl_->resources;
}

ScheduleStore& MemoryStore::Schedules() {
    return *impl_->scheduling;
}

ResultStore& MemoryStore::Results() {
    return impl_->results;
}

std::unique_ptr<Store> MakeMemoryStore(base::Clock& clock, base::Random& random) {
    return std::make_unique<MemoryStore>(clock, random);
}

}  // namespace stint::store
