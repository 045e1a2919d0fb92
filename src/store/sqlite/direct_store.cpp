#include "store/sqlite/direct_store.h"

#include <fmt/format.h>

#include <type_traits>

#include "base/check.h"
#include "base/result.h"
#include "base/text.h"
#include "store/sqlite/migrate.h"

namespace stint::store::lite {

namespace {

constexpr int kResolvedPerTurn = 1000;

// Carries the host's refusal past the writer, which rolls back what throws.
struct HostRefused : std::exception {
    explicit HostRefused(Error why) : error(std::move(why)) {}
    Error error;
};

class HostTransaction final : public Transaction {
public:
    explicit HostTransaction(Ops& ops) : ops_(ops) {}

    std::vector<SubmitReply> Submit(std::span<const NewTask> tasks) override {
        RequireWhole();
        sqlite::Gate::Pause pause(ops_.gate());
        ops_.WatchRows();
        std::vector<SubmitReply> replies = ops_.Submit(Prepare(tasks));
        ops_.WriteMember();  // the host's own statements see it
        return replies;
    }
    SettleReply Settle(const Settlement& settlement) override {
        RequireWhole();
        sqlite::Gate::Pause pause(ops_.gate());
        ops_.WatchRows();
        SettleReply reply = ops_.SettleOne(settlement);
        ops_.WriteMember();
        return reply;
    }
    void* native() override { return ops_.db().handle(); }
    bool whole() const { return ops_.db().in_transaction(); }

private:
    void RequireWhole() const {
        if (!whole()) throw Unavailable("the transaction of this Write() was rolled back already");
    }

    Ops& ops_;
};

void RunHost(Ops& ops, const std::function<Result<void>(Transaction&)>& work, Duration limit) {
    struct Watch {
        Watch(Ops& watched, base::Instant until) : ops(watched) { ops.gate().Open(until); }
        ~Watch() {
            ops.gate().Close();
            ops.WatchRows();
        }
        Ops& ops;
    };
    HostTransaction transaction(ops);
    Result<void> result;
    bool overdue = false;
    {
        Watch watch(ops, base::SystemClock().Now() + limit);
        result = work(transaction);
        overdue = ops.gate().overdue();
    }
    if (overdue) {
        throw HostRefused(base::MakeError(
            Code::kTimeout,
            "the work inside Write() took more than {} and was rolled back: every other change of "
            "the store waits for it; do slow things before it",
            base::DurationText(limit)
        ));
    }
    if (!result) throw HostRefused(result.error());
    if (!transaction.whole()) {
        throw HostRefused(base::MakeError(
            Code::kInvalid,
            "a statement inside Write() rolled the whole transaction back (OR ROLLBACK, a "
            "trigger's RAISE(ROLLBACK), a full disk), so nothing of it was stored: let such a "
            "statement fail alone, and return its error"
        ));
    }
    // Only the commit would find out, and it is that of everybody else in the group.
    if (ops.db().owes_foreign_keys()) {
        throw HostRefused(base::MakeError(
            Code::kInvalid,
            "what was written inside Write() breaks a deferred foreign key, so nothing of it was "
            "stored: PRAGMA foreign_key_check names the rows; write the row that they refer to as "
            "well"
        ));
    }
}

}  // namespace

template <class Member>
auto DirectStore::Change(Member&& member, Writer::Work whose) {
    using Reply = std::invoke_result_t<Member, Ops&>;
    if constexpr (std::is_void_v<Reply>) {
        writer_.Run([&member](Ops& ops) { member(ops); }, whose);
    } else {
        std::optional<Reply> reply;
        writer_.Run([&member, &reply](Ops& ops) { reply.emplace(member(ops)); }, whose);
        return std::move(*reply);
    }
}

template <class Question>
auto DirectStore::Ask(Question&& question) {
    // After a failed write nobody knows what the disk holds: a definite answer might be wrong.
    writer_.RequireSound();
    return readers_.With(question);
}

DirectStore::DirectStore(const SqliteOptions& options, const Opener& self)
    : options_(options),
      self_(self),
      writer_({
          .path = options.path,
          .clock = options.clock,
          .random = options.random,
          .migrate = options.migrate,
          .sync = options.sync,
      }),
      readers_(options.path, *options.clock, options.readers),
      identity_(readers_.With([](Reads& reads) { return reads.Identity(); })) {
    int dead = Change([](Ops& ops) { return ops.LapseSessionsOfTheDead(); });
    if (dead > 0) {
        options_.log.Info(
            "sessions of processes that are gone will be recovered at once",
            {{"sessions", std::to_string(dead)}}
        );
    }
    if (!writer_.unclean()) return;
    auto damaged = [this](const std::string& verdict) { BreakDamaged(verdict); };
    check_ = std::make_unique<FileCheck>(options_.path, damaged, options_.log);
}

void DirectStore::BreakDamaged(const std::string& verdict) {
    std::string why = fmt::format(
        "{} is damaged after an unclean end ({}): restore a backup, or recover it with "
        "`sqlite3 FILE .recover`",
        options_.path,
        verdict
    );
    options_.log.Error("the store's file is damaged", {{"why", why}});
    writer_.Break(why);
}

StoreInfo DirectStore::Info() {
    return {
        .kind = "sqlite",
        .address = options_.path,
        .version = sqlite::LibraryVersion(),
        .schema = KnownSchema(),
        .durability =
            options_.sync
                ? "every commit is forced to the disk (WAL, synchronous=FULL): it survives "
                  "crashes of the process, of the system, and loss of power"
                : "commits are not forced to the disk: for tests only",
        .shared = true,
        .identity = identity_,
    };
}

Time DirectStore::Now() {
    return options_.clock->WallTime();
}

TaskId DirectStore::ReserveIds(int count) {
    return Change([count](Ops& ops) { return ops.ReserveIds(count); });
}

void DirectStore::PublishTypes(std::span<const TypeDefaults> types) {
    Change([types](Ops& ops) { ops.PublishTypes(types); });
    // In turns: a backlog of years must not keep the others from the writer.
    auto resolve = [types](Ops& ops) { return ops.ResolveUnknown(types, kResolvedPerTurn); };
    while (Change(resolve) == kResolvedPerTurn) {
    }
}

std::vector<TypeRecord> DirectStore::Types() {
    return Ask([](Reads& reads) { return reads.Types(); });
}

std::vector<SubmitReply> DirectStore::Submit(std::span<const NewTask> tasks) {
    std::vector<PreparedTask> prepared = Prepare(tasks);  // here, not on the writer's time
    if (ArePlain(tasks)) {
        auto submit = [&prepared](Ops& ops) { return ops.SubmitPlain(prepared); };
        return Change(submit, Writer::Work::kPlain);
    }
    return Change([&prepared](Ops& ops) { return ops.Submit(prepared); }, Writer::Work::kBrief);
}

std::vector<SubmitReply> DirectStore::SubmitAll(std::span<const NewTask> tasks) {
    std::vector<PreparedTask> prepared = Prepare(tasks);
    return Change([&prepared](Ops& ops) { return ops.SubmitAll(prepared); });
}

NodeId DirectStore::OpenSession(const NewSession& session) {
    return OpenSessionFor(session, self_);
}

NodeId DirectStore::OpenSessionFor(const NewSession& session, const Opener& opener) {
    return Change([&](Ops& ops) { return ops.OpenSession(session, opener); });
}

RenewReply DirectStore::Renew(const RenewRequest& request) {
    return Change([&request](Ops& ops) { return ops.Renew(request); });
}

void DirectStore::CloseSession(SessionId session) {
    Change([session](Ops& ops) { ops.CloseSession(session); });
}

std::vector<SessionRecord> DirectStore::Sessions() {
    return Ask([](Reads& reads) { return reads.Sessions(); });
}

std::vector<NodeRecord> DirectStore::Nodes() {
    return Ask([](Reads& reads) { return reads.Nodes(); });
}

ClaimReply DirectStore::Claim(const ClaimRequest& request) {
    return Change([&request](Ops& ops) { return ops.Claim(request); }, Writer::Work::kBrief);
}

std::vector<SettleReply> DirectStore::Settle(std::span<const Settlement> settlements) {
    auto settle = [settlements](Ops& ops) { return ops.Settle(settlements); };
    return Change(settle, Writer::Work::kBrief);
}

ReclaimReply DirectStore::Reclaim(const ReclaimRequest& request) {
    ReclaimReply reply = Change([&request](Ops& ops) { return ops.Reclaim(request); });
    for (TaskId task : reply.skipped) {
        options_.log.Error(
            "a task is not recovered, since its retry policy cannot be read: run the program that "
            "wrote it, or cancel the task",
            {{"task", task.ToString()}}
        );
    }
    return reply;
}

Result<State> DirectStore::FinishBackground(const BackgroundFinish& finish) {
    return Change([&finish](Ops& ops) { return ops.FinishBackground(finish); });
}

std::optional<SettleReply> DirectStore::SettledBy(TaskId task, LeaseToken token) {
    return Ask([=](Reads& reads) { return reads.SettledBy(task, token); });
}

std::vector<CancelReply> DirectStore::Cancel(
    std::span<const TaskId> tasks, std::string_view actor, std::string_view reason
) {
    return Change([=](Ops& ops) { return ops.Cancel(tasks, actor, reason); });
}

std::vector<RetryReply> DirectStore::Retry(std::span<const TaskId> tasks, std::string_view actor) {
    return Change([=](Ops& ops) { return ops.Retry(tasks, actor); });
}

std::vector<RetryReply> DirectStore::Discard(
    std::span<const TaskId> tasks, std::string_view actor
) {
    return Change([=](Ops& ops) { return ops.Discard(tasks, actor); });
}

Result<void> DirectStore::Edit(TaskId task, const TaskEdit& edit, std::string_view actor) {
    if (auto valid = Validate(edit); !valid) return valid;
    return Change([&](Ops& ops) { return ops.Edit(task, edit, actor); });
}

std::optional<TaskRecord> DirectStore::Get(TaskId task) {
    return Ask([task](Reads& reads) { return reads.Get(task); });
}

std::optional<TaskId> DirectStore::FindByIdempotencyKey(TenantId tenant, std::string_view key) {
    return Ask([=](Reads& reads) { return reads.FindByIdempotencyKey(tenant, key); });
}

TaskPage DirectStore::List(const ListRequest& request) {
    return Ask([&request](Reads& reads) { return reads.List(request); });
}

std::map<CountKey, std::int64_t> DirectStore::Counts(const TaskFilter& filter) {
    return Ask([&filter](Reads& reads) { return reads.Counts(filter); });
}

std::vector<AttemptRecord> DirectStore::Attempts(TaskId task) {
    return Ask([task](Reads& reads) { return reads.Attempts(task); });
}

std::vector<WaitMember> DirectStore::Waited(TaskId task) {
    return Ask([task](Reads& reads) { return reads.Waited(task); });
}

std::vector<AuditEntry> DirectStore::Audit(const AuditRequest& request) {
    return Ask([&request](Reads& reads) { return reads.Audit(request); });
}

std::vector<FinishedTask> DirectStore::Finished(std::span<const TaskId> tasks) {
    return Ask([tasks](Reads& reads) { return reads.Finished(tasks); });
}

std::vector<Explanation> DirectStore::Explain(TaskId task, const ClaimRequest& claimer) {
    std::vector<Explanation> reasons =
        Ask([&](Reads& reads) { return reads.Explain(task, claimer); });
    if (reasons.empty() || reasons.front().condition == Condition::kNotWaiting) return reasons;
    // What a plan decides, the writer knows.
    const bool goes_otherwise = reasons.front().condition == Condition::kEligible;
    for (Explanation& more : Change([&](Ops& ops) { return ops.PlanReasons(task, claimer); })) {
        if (more.condition == Condition::kEligible && !goes_otherwise) continue;
        std::erase_if(reasons, [](const Explanation& one) {
            return one.condition == Condition::kEligible;
        });
        reasons.push_back(std::move(more));
    }
    return reasons;
}

std::vector<Crowd> DirectStore::Crowds(const std::string& queue) {
    return Ask([&](Reads& reads) { return reads.Crowds(queue); });
}

std::optional<QueueSettings> DirectStore::ChangeQueue(
    const QueueChange& change, std::string_view actor
) {
    return Change([&](Ops& ops) { return ops.ChangeQueue(change, actor); });
}

std::vector<QueueRecord> DirectStore::Queues() {
    return Ask([](Reads& reads) { return reads.Queues(); });
}

HousekeepReply DirectStore::Housekeep(const HousekeepRequest& request) {
    HousekeepReply reply = Change([&request](Ops& ops) { return ops.Housekeep(request); });
    if (!request.history) return reply;
    DropPeriods(request.limit, reply);
    reply.more |= flows_.Tidy(request.limit) >= request.limit;
    reply.more |= Change([&request](Ops& ops) { return ops.ForgetResults(request.limit); });
    return reply;
}

void DirectStore::DropPeriods(int limit, HousekeepReply& reply) {
    for (int i = 0; i < limit; ++i) {
        auto dropped = Change([](Ops& ops) { return ops.DropExpiredPeriod(); });
        if (!dropped) return;
        reply.dropped_periods.push_back(*dropped);
    }
    reply.more = true;
}

std::vector<CheckFinding> DirectStore::Check() {
    return Ask([](Reads& reads) { return reads.Check(); });
}

Result<void> DirectStore::Write(const std::function<Result<void>(Transaction&)>& work) {
    try {
        writer_.Run(
            [&](Ops& ops) { RunHost(ops, work, options_.write_limit); }, Writer::Work::kHosts
        );
        return {};
    } catch (const HostRefused& refused) {
        return refused.error;
    }
}

Result<std::unique_ptr<Transaction>> DirectStore::Borrow(void* native_connection) {
    return RefuseBorrow(native_connection);
}

Error DirectStore::RefuseBorrow(void*) {
    return base::MakeError(
        Code::kInvalid,
        "a SQLite store cannot join a transaction of another connection, which would be a second "
        "writer of the file: write through Write(), which gives the writer's own connection"
    );
}

}  // namespace stint::store::lite
