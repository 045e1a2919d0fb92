// The store's body. Its operations are in the file that names them: submit.cpp, claim.cpp, …
#pragma once

#include <atomic>
#include <map>
#include <mutex>

#include "model/decide.h"
#include "store/postgres/catalog.h"
#include "store/postgres/changes.h"
#include "store/postgres/db.h"
#include "store/postgres/group.h"
#include "store/postgres/marks.h"

namespace stint::store::pg {

constexpr int kClasses = 16;  // of retention; a history table is one period and one of them

struct Incoming;
struct Taken;

class PostgresStore final : public Store {
public:
    explicit PostgresStore(const PostgresOptions& options);

    StoreInfo Info() override;
    Time Now() override;
    TaskId ReserveIds(int count) override;
    void PublishTypes(std::span<const TypeDefaults> types) override;
    std::vector<TypeRecord> Types() override;
    std::vector<SubmitReply> Submit(std::span<const NewTask> tasks) override;
    NodeId OpenSession(const NewSession& session) override;
    RenewReply Renew(const RenewRequest& request) override;
    void CloseSession(SessionId session) override;
    std::vector<SessionRecord> Sessions() override;
    std::vector<NodeRecord> Nodes() override;
    ClaimReply Claim(const ClaimRequest& request) override;
    std::vector<SettleReply> Settle(std::span<const Settlement> settlements) override;
    ReclaimReply Reclaim(const ReclaimRequest& request) override;
    Result<State> FinishBackground(const BackgroundFinish& finish) override;
    std::optional<SettleReply> SettledBy(TaskId task, LeaseToken token) override;
    std::vector<CancelReply> Cancel(
        std::span<const TaskId> tasks, std::string_view actor, std::string_view reason
    ) override;
    std::vector<RetryReply> Retry(std::span<const TaskId> tasks, std::string_view actor) override;
    std::vector<RetryReply> Discard(std::span<const TaskId> tasks, std::string_view actor) override;
    Result<void> Edit(TaskId task, const TaskEdit& edit, std::string_view actor) override;
    std::optional<TaskRecord> Get(TaskId task) override;
    std::optional<TaskId> FindByIdempotencyKey(TenantId tenant, std::string_view key) override;
    TaskPage List(const ListRequest& request) override;
    std::map<CountKey, std::int64_t> Counts(const TaskFilter& filter) override;
    std::vector<AttemptRecord> Attempts(TaskId task) override;
    std::vector<AuditEntry> Audit(const AuditRequest& request) override;
    std::vector<FinishedTask> Finished(std::span<const TaskId> tasks) override;
    std::vector<Explanation> Explain(TaskId task, const ClaimRequest& claimer) override;
    std::optional<QueueSettings> ChangeQueue(const QueueChange& change, std::string_view actor)
        override;
    std::vector<QueueRecord> Queues() override;
    HousekeepReply Housekeep(const HousekeepRequest& request) override;
    std::vector<CheckFinding> Check() override;
    Result<void> Write(const std::function<Result<void>(store::Transaction&)>& work) override;
    Result<std::unique_ptr<store::Transaction>> Borrow(void* native_connection) override;

    // Within a transaction of the caller. Throws OutdatedTypes (see submit.h).
    std::vector<SubmitReply> SubmitIn(Transaction& transaction, std::span<const NewTask> tasks);
    std::vector<SettleReply> SettleIn(
        Transaction& transaction, std::span<const Settlement> settlements
    );

    // For the parts of a submit: see submit.h.
    Db& db() { return db_; }
    Catalog& catalog() { return catalog_; }
    // Which of the ids are taken, live or finished.
    std::vector<TaskId> Existing(Transaction& transaction, std::span<const TaskId> tasks);
    // Out of the lines, and into the hands of this transaction.
    std::vector<Facts> TakeWaiting(
        Transaction& transaction, std::vector<std::int64_t> ids, std::initializer_list<State> states
    );
    int LaneWith(int lane, bool suspect);
    // Once this is committed, claims of this process look there again.
    void Ready(Transaction& transaction, const Changes& changes);

private:
    // submit.cpp
    std::vector<SubmitReply> SubmitTogether(std::span<const NewTask> tasks);
    std::vector<SubmitReply> SubmitHeld(std::span<const NewTask> tasks);
    void Prepare(
        std::span<const NewTask> tasks,
        std::vector<SubmitReply>& replies,
        std::vector<Incoming>& incoming
    );
    TaskId TakeId();
    bool IsFresh(TaskId id);

    // claim.cpp
    bool SkipPassed(
        const std::vector<std::int64_t>& lanes, const std::vector<std::int64_t>& positions
    );
    bool NothingToClaim(const ClaimRequest& request, ClaimReply& reply);
    bool ClaimOnce(
        const ClaimRequest& request,
        int limit,
        const Marks::Snapshot& marks,
        ClaimReply& reply,
        std::vector<Taken>& taken
    );

    // types.cpp
    void ApplyDefaults(const std::map<std::string, TypeDefaults>& types, bool untouched);
    void ApplyDefaultsTo(
        Transaction& transaction,
        const std::vector<std::int64_t>& ids,
        const std::map<std::string, TypeDefaults>& types
    );
    void ResolveStragglers();

    // read.cpp
    std::vector<TaskRecord> Records(std::span<const TaskId> tasks);
    std::vector<TaskRecord> RecordsIn(Transaction& transaction, std::span<const TaskId> tasks);
    std::vector<int> PartsOf(std::span<const TaskId> tasks);
    std::vector<int> PeriodsOf(TaskId task);
    struct Look {
        TaskId before, floor;  // ids [floor, before)
        Catalog::Stretch stretch;
        int rows = 0;  // there, whatever a filter says
    };
    Look LookBelow(const TaskFilter& filter, TaskId before, int rows);
    std::vector<TaskRecord> Candidates(const TaskFilter& filter, const Look& look, int limit);
    Rows FirstThatDoesNotReplay();

    // settle.cpp
    void SettleComplete(
        Transaction& transaction,
        std::span<const Settlement> settlements,
        std::span<const std::size_t> which,
        std::vector<SettleReply>& replies
    );
    SettleReply SettleOne(const Facts& facts, const Settlement& settlement, Changes& changes);

    // reclaim.cpp
    std::vector<Facts> DoomedBySession(Transaction& transaction, int limit, bool& more);
    std::vector<Facts> DoomedByTime(
        Transaction& transaction, Duration grace, int limit, bool& more
    );
    std::vector<Facts> DoomedOutside(
        Transaction& transaction, int limit, bool& more, std::vector<TaskId>& skipped
    );
    Reclaimed ReclaimCrashed(const Facts& facts, Changes& changes);
    Reclaimed ReclaimUnstarted(const Facts& facts, Changes& changes);
    Reclaimed ReclaimTimedOut(const Facts& facts, Changes& changes);
    Reclaimed ReclaimBackground(const Facts& facts, Changes& changes);
    void EndHeld(
        const Facts& facts,
        Facts after,
        const Evidence& evidence,
        const Disposition& what,
        Changes& changes
    );

    // operate.cpp
    std::map<TaskId, CancelReply> CancelLive(
        std::vector<std::int64_t> tasks, std::string_view actor, const std::string& why
    );
    void CancelTaken(
        const std::vector<Facts>& taken,
        std::string_view actor,
        const std::string& reason,
        Changes& changes,
        std::map<TaskId, CancelReply>& replies
    );
    void ReviveFinished(
        Transaction& transaction,
        std::vector<TaskId> tasks,
        std::string_view actor,
        std::map<TaskId, RetryReply>& replies
    );

    // housekeep.cpp
    int ExpireUnstarted(int limit);
    std::vector<std::string> DropPeriods(int limit);
    CheckFinding CheckTallies();

    const PostgresOptions options_;
    base::Random& random_;
    Db db_;
    Catalog catalog_;
    Marks marks_;
    GroupSubmit group_;
    GroupSubmit keyed_group_;        // apart from those that have no key to wait for
    std::mutex held_mutex_;          // the turn of one that waits for others' transactions
    std::atomic<bool> idle_{false};  // the last claim found nothing

    std::mutex ids_mutex_;  // guards the four below
    base::Instant ids_taken_{};
    std::int64_t next_id_ = 0;
    std::int64_t last_id_ = -1;
    std::map<std::int64_t, std::int64_t> fresh_;  // reserved here and not yet used: first, last
};

// A change of what was asked; what is not given stays.
struct LiveEdit {
    TaskId id;
    std::optional<int> policy;
    int flags = 0;
    int explicit_mask = 0;
    Duration timeout{};
    bool set_start_by = false;
    std::optional<Time> start_by;
    bool set_tags = false;
    std::vector<std::string> tags;
    std::optional<std::string> input;
};
Params EditParams(std::span<const LiveEdit> edits);

// A crash that was the task's own, within the window.
void CountCrash(Facts& facts);

// Distinct and sorted, as every statement that locks wants them.
std::vector<std::int64_t> Sorted(std::vector<std::int64_t> values);
std::vector<std::int64_t> Values(std::span<const TaskId> tasks);

}  // namespace stint::store::pg
