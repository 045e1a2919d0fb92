#include "store/sqlite/shared_store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>

#include "base/result.h"
#include "base/test_point.h"
#include "sqlite/error.h"
#include "sqlite/filesystem.h"
#include "store/sqlite/migrate.h"
#include "store/sqlite/shared_call.h"

namespace stint::store::lite {

namespace {

constexpr Duration kLookAgain = std::chrono::milliseconds{10};

// One file has one name, whatever links lead to it: the lock and the socket lie beside that name.
SqliteOptions Canonical(SqliteOptions options) {
    std::error_code error;
    auto path = std::filesystem::weakly_canonical(std::filesystem::absolute(options.path), error);
    if (!error) options.path = path.string();
    if (auto good = sqlite::CheckFilesystem(options.path); !good)
        throw Unavailable(good.error().message);
    return options;
}

}  // namespace

SharedStore::SharedStore(const SqliteOptions& options)
    : options_(Canonical(options)),
      socket_(SocketPath(options_.path)),
      self_{base::SystemRandom().MakeId<HandleId>(), ProcessIdentity(getpid())} {
    Current();
}

std::shared_ptr<SharedStore::Role> SharedStore::Current() {
    const int failures = failures_;
    std::lock_guard guard(mutex_);
    if (role_) return role_;
    // Who waited while another looked in vain does not look as long again, one after the other.
    if (failures_ != failures) throw Unavailable(why_failed_);
    try {
        role_ = FindRole();
    } catch (const Unavailable& error) {
        why_failed_ = error.what();
        ++failures_;
        throw;
    }
    return role_;
}

void SharedStore::Leave(const std::shared_ptr<Role>& role) {
    std::lock_guard guard(mutex_);
    if (role_ == role) role_.reset();
}

bool SharedStore::is_owner() {
    return Current()->direct != nullptr;
}

std::shared_ptr<SharedStore::Role> SharedStore::FindRole() {
    base::Instant until = base::SystemClock().Now() + options_.patience;
    while (true) {
        if (!options_.force_client) {
            if (auto lock = OwnerLock::TryTake(options_.path)) return BecomeOwner(std::move(*lock));
        }
        if (auto client = FindOwner()) {
            auto role = std::make_shared<Role>();
            role->client = std::move(client);
            return role;
        }
        if (base::SystemClock().Now() > until) {
            throw Unavailable(fmt::format(
                "{} is owned by another process ({}) that does not answer",
                options_.path,
                OwnerLock::Holder(options_.path)
            ));
        }
        std::mutex nobody;
        std::condition_variable_any nothing;
        std::unique_lock lock(nobody);
        base::SystemClock().WaitUntil(lock, nothing, {}, base::SystemClock().Now() + kLookAgain);
    }
}

std::unique_ptr<Client> SharedStore::FindOwner() {
    try {
        return Client::Open(socket_, self_.handle, options_);
    } catch (const OwnerSilent&) {
        throw Unavailable(StoppedOwner());
    }
}

std::string SharedStore::StoppedOwner() const {
    return fmt::format(
        "{} is owned by another process ({}) that does not respond: it is stopped or hangs; let it "
        "go on (kill -CONT), or end it and another takes over",
        options_.path,
        OwnerLock::Holder(options_.path)
    );
}

std::shared_ptr<SharedStore::Role> SharedStore::BecomeOwner(OwnerLock lock) {
    base::TestPoint("sqlite.locked");
    auto role = std::make_shared<Role>();
    role->lock.emplace(std::move(lock));
    try {
        role->direct = std::make_unique<DirectStore>(options_, self_);
    } catch (const sqlite::Error& error) {
        throw Unavailable(fmt::format("cannot open {}: {}", options_.path, error.what()));
    }
    role->server = std::make_unique<Server>(*role->direct, socket_, options_);
    return role;
}

StoreInfo SharedStore::Info() {
    return Do<StoreInfo>(Operation::kInfo, [](DirectStore& s) { return s.Info(); });
}

Time SharedStore::Now() {
    return Do<Time>(Operation::kNow, [](DirectStore& s) { return s.Now(); });
}

TaskId SharedStore::ReserveIds(int count) {
    return Do<TaskId>(
        Operation::kReserveIds, [&](DirectStore& s) { return s.ReserveIds(count); }, count
    );
}

void SharedStore::PublishTypes(std::span<const TypeDefaults> types) {
    Do<void>(
        Operation::kPublishTypes, [&](DirectStore& s) { s.PublishTypes(types); }, Copy(types)
    );
}

std::vector<TypeRecord> SharedStore::Types() {
    return Do<std::vector<TypeRecord>>(Operation::kTypes, [](DirectStore& s) { return s.Types(); });
}

std::vector<SubmitReply> SharedStore::Submit(std::span<const NewTask> tasks) {
    return Do<std::vector<SubmitReply>>(
        Operation::kSubmit, [&](DirectStore& s) { return s.Submit(tasks); }, Copy(tasks)
    );
}

std::vector<SubmitReply> SharedStore::SubmitAll(std::span<const NewTask> tasks) {
    return Do<std::vector<SubmitReply>>(
        Operation::kSubmitAll, [&](DirectStore& s) { return s.SubmitAll(tasks); }, Copy(tasks)
    );
}

NodeId SharedStore::OpenSession(const NewSession& session) {
    return Do<NodeId>(
        Operation::kOpenSession, [&](DirectStore& s) { return s.OpenSession(session); }, session
    );
}

RenewReply SharedStore::Renew(const RenewRequest& request) {
    return Do<RenewReply>(
        Operation::kRenew, [&](DirectStore& s) { return s.Renew(request); }, request
    );
}

void SharedStore::CloseSession(SessionId session) {
    Do<void>(
        Operation::kCloseSession, [&](DirectStore& s) { s.CloseSession(session); }, session
    );
}

std::vector<SessionRecord> SharedStore::Sessions() {
    return Do<std::vector<SessionRecord>>(Operation::kSessions, [](DirectStore& s) {
        return s.Sessions();
    });
}

std::vector<NodeRecord> SharedStore::Nodes() {
    return Do<std::vector<NodeRecord>>(Operation::kNodes, [](DirectStore& s) { return s.Nodes(); });
}

ClaimReply SharedStore::Claim(const ClaimRequest& request) {
    return Do<ClaimReply>(
        Operation::kClaim, [&](DirectStore& s) { return s.Claim(request); }, request
    );
}

std::vector<SettleReply> SharedStore::Settle(std::span<const Settlement> settlements) {
    return Do<std::vector<SettleReply>>(
        Operation::kSettle, [&](DirectStore& s) { return s.Settle(settlements); }, Copy(settlements)
    );
}

ReclaimReply SharedStore::Reclaim(const ReclaimRequest& request) {
    return Do<ReclaimReply>(
        Operation::kReclaim, [&](DirectStore& s) { return s.Reclaim(request); }, request
    );
}

Result<State> SharedStore::FinishBackground(const BackgroundFinish& finish) {
    return Do<Result<State>>(
        Operation::kFinishBackground,
        [&](DirectStore& s) { return s.FinishBackground(finish); },
        finish
    );
}

std::optional<SettleReply> SharedStore::SettledBy(TaskId task, LeaseToken token) {
    return Do<std::optional<SettleReply>>(
        Operation::kSettledBy, [&](DirectStore& s) { return s.SettledBy(task, token); }, task, token
    );
}

std::vector<CancelReply> SharedStore::Cancel(
    std::span<const TaskId> tasks, std::string_view actor, std::string_view reason
) {
    return Do<std::vector<CancelReply>>(
        Operation::kCancel,
        [&](DirectStore& s) { return s.Cancel(tasks, actor, reason); },
        Copy(tasks),
        actor,
        reason
    );
}

std::vector<RetryReply> SharedStore::Retry(std::span<const TaskId> tasks, std::string_view actor) {
    return Do<std::vector<RetryReply>>(
        Operation::kRetry, [&](DirectStore& s) { return s.Retry(tasks, actor); }, Copy(tasks), actor
    );
}

std::vector<RetryReply> SharedStore::Discard(
    std::span<const TaskId> tasks, std::string_view actor
) {
    return Do<std::vector<RetryReply>>(
        Operation::kDiscard,
        [&](DirectStore& s) { return s.Discard(tasks, actor); },
        Copy(tasks),
        actor
    );
}

Result<void> SharedStore::Edit(TaskId task, const TaskEdit& edit, std::string_view actor) {
    return Do<Result<void>>(
        Operation::kEdit,
        [&](DirectStore& s) { return s.Edit(task, edit, actor); },
        task,
        edit,
        actor
    );
}

std::optional<TaskRecord> SharedStore::Get(TaskId task) {
    return Do<std::optional<TaskRecord>>(
        Operation::kGet, [&](DirectStore& s) { return s.Get(task); }, task
    );
}

std::optional<TaskId> SharedStore::FindByIdempotencyKey(TenantId tenant, std::string_view key) {
    return Do<std::optional<TaskId>>(
        Operation::kFindByIdempotencyKey,
        [&](DirectStore& s) { return s.FindByIdempotencyKey(tenant, key); },
        tenant,
        key
    );
}

TaskPage SharedStore::List(const ListRequest& request) {
    return Do<TaskPage>(
        Operation::kList, [&](DirectStore& s) { return s.List(request); }, request
    );
}

std::map<CountKey, std::int64_t> SharedStore::Counts(const TaskFilter& filter) {
    return Do<std::map<CountKey, std::int64_t>>(
        Operation::kCounts, [&](DirectStore& s) { return s.Counts(filter); }, filter
    );
}

std::vector<AttemptRecord> SharedStore::Attempts(TaskId task) {
    return Do<std::vector<AttemptRecord>>(
        Operation::kAttempts, [&](DirectStore& s) { return s.Attempts(task); }, task
    );
}

std::vector<WaitMember> SharedStore::Waited(TaskId task) {
    return Do<std::vector<WaitMember>>(
        Operation::kWaited, [&](DirectStore& s) { return s.Waited(task); }, task
    );
}

std::vector<AuditEntry> SharedStore::Audit(const AuditRequest& request) {
    return Do<std::vector<AuditEntry>>(
        Operation::kAudit, [&](DirectStore& s) { return s.Audit(request); }, request
    );
}

std::vector<FinishedTask> SharedStore::Finished(std::span<const TaskId> tasks) {
    return Do<std::vector<FinishedTask>>(
        Operation::kFinished, [&](DirectStore& s) { return s.Finished(tasks); }, Copy(tasks)
    );
}

std::vector<Explanation> SharedStore::Explain(TaskId task, const ClaimRequest& claimer) {
    return Do<std::vector<Explanation>>(
        Operation::kExplain, [&](DirectStore& s) { return s.Explain(task, claimer); }, task, claimer
    );
}

std::vector<Crowd> SharedStore::Crowds(const std::string& queue) {
    return Do<std::vector<Crowd>>(
        Operation::kCrowds, [&](DirectStore& s) { return s.Crowds(queue); }, queue
    );
}

std::optional<QueueSettings> SharedStore::ChangeQueue(
    const QueueChange& change, std::string_view actor
) {
    return Do<std::optional<QueueSettings>>(
        Operation::kChangeQueue,
        [&](DirectStore& s) { return s.ChangeQueue(change, actor); },
        change,
        actor
    );
}

std::vector<QueueRecord> SharedStore::Queues() {
    return Do<std::vector<QueueRecord>>(Operation::kQueues, [](DirectStore& s) {
        return s.Queues();
    });
}

HousekeepReply SharedStore::Housekeep(const HousekeepRequest& request) {
    return Do<HousekeepReply>(
        Operation::kHousekeep, [&](DirectStore& s) { return s.Housekeep(request); }, request
    );
}

std::vector<CheckFinding> SharedStore::Check() {
    return Do<std::vector<CheckFinding>>(Operation::kCheck, [](DirectStore& s) {
        return s.Check();
    });
}

Result<void> SharedStore::Write(const std::function<Result<void>(Transaction&)>& work) {
    std::shared_ptr<Role> role = Current();
    if (role->direct) return role->direct->Write(work);
    return base::MakeError(
        Code::kInvalid,
        "{} is owned by another process ({}), and only the owner can run a host's own SQL in the "
        "store's "
        "transaction: do it there, or submit and settle without it",
        options_.path,
        OwnerLock::Holder(options_.path)
    );
}

ScheduleStore& SharedStore::Schedules() {
    return schedules_;
}

Result<std::unique_ptr<Transaction>> SharedStore::Borrow(void* native_connection) {
    return DirectStore::RefuseBorrow(native_connection);
}

}  // namespace stint::store::lite

namespace stint::store {

std::unique_ptr<Store> OpenSqliteStore(const SqliteOptions& options) {
    return std::make_unique<lite::SharedStore>(options);
}

SqliteMigration MigrateSqlite(const SqliteOptions& given, bool dry_run) {
    SqliteOptions options = lite::Canonical(given);
    auto report = [](const lite::MigrationPlan& plan) {
        return SqliteMigration{.from = plan.from, .to = plan.to, .sql = plan.sql};
    };
    try {
        if (dry_run) {
            if (!std::filesystem::exists(options.path)) return report(lite::PlanFrom(0));
            sqlite::Connection reader(options.path, {});
            return report(lite::PlanMigration(reader));
        }
        auto lock = lite::OwnerLock::TryTake(options.path);
        if (!lock) {
            throw Unavailable(fmt::format(
                "{} is in use ({}): stop it first",
                options.path,
                lite::OwnerLock::Holder(options.path)
            ));
        }
        sqlite::Connection writer(options.path, {.role = sqlite::OpenOptions::Role::kWriter});
        return report(lite::Migrate(writer));
    } catch (const sqlite::Error& error) {
        throw Unavailable(fmt::format("cannot migrate {}: {}", options.path, error.what()));
    }
}

}  // namespace stint::store
