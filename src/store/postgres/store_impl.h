// The store's body. Its operations are in the file that names them: submit.cpp, claim.cpp, …
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <set>

#include "model/decide.h"
#include "model/wait.h"
#include "store/block.h"
#include "store/postgres/announce.h"
#include "store/postgres/catalog.h"
#include "store/postgres/changes.h"
#include "store/postgres/db.h"
#include "store/postgres/events.h"
#include "store/postgres/flows.h"
#include "store/postgres/group.h"
#include "store/postgres/marks.h"
#include "store/postgres/resources.h"
#include "store/postgres/results.h"
#include "store/postgres/schedules.h"

namespace stint::store::pg {

constexpr int kClasses = 16;  // of retention; a history table is one period and one of them

struct Incoming;
struct Taken;

// A wait, to be written down or as it was read.
struct NewWait {
    TaskId waiter;
    WaitOn policy;
    std::vector<WaitMember> members;  // of one to be written
    WaitTally tally;
    bool started = false;  // it waits in the middle of its work

    WaitVerdict verdict() const { return Judge(policy, tally); }
    // Only a task that need not wait at all before it starts goes on without being BLOCKED.
    bool blocks() const { return started || verdict() != WaitVerdict::kSucceeded; }
};

class PostgresStore final : public Store {
public:
    explicit PostgresStore(const PostgresOptions& options);

    StoreInfo Info() override;
    Time Now() override;
    TaskId ReserveIds(int count) override;
    void PublishTypes(std::span<const TypeDefaults> types) override;
    std::vector<TypeRecord> Types() override;
    std::vector<SubmitReply> Submit(std::span<const NewTask> tasks) override;
    std::vector<SubmitReply> SubmitAll(std::span<const NewTask> tasks) override;
    NodeId OpenSession(const NewSession& session) override;
    RenewReply Renew(const RenewRequest& request) override;
    void CloseSession(SessionId session) override;
    std::vector<SessionRecord> Sessions() override;
    std::vector<NodeRecord> Nodes() override;
    ClaimReply Claim(const ClaimRequest& request) override;
    std::optional<Quiet> LastQuiet() override;
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
    std::vector<WaitMember> Waited(TaskId task) override;
    std::vector<AuditEntry> Audit(const AuditRequest& request) override;
    std::vector<FinishedTask> Finished(std::span<const TaskId> tasks) override;
    std::vector<Explanation> Explain(TaskId task, const ClaimRequest& claimer) override;
    std::vector<Crowd> Crowds(const std::string& queue) override;
    std::optional<QueueSettings> ChangeQueue(const QueueChange& change, std::string_view actor)
        override;
    std::vector<QueueRecord> Queues() override;
    EventStore& Events() override { return events_; }
    FlowStore& Flows() override { return flows_; }
    HousekeepReply Housekeep(const HousekeepRequest& request) override;
    std::vector<CheckFinding> Check() override;
    Result<void> Write(const std::function<Result<void>(store::Transaction&)>& work) override;
    Result<std::unique_ptr<store::Transaction>> Borrow(void* native_connection) override;
    ScheduleStore& Schedules() override { return schedules_; }
    ResourceStore& Resources() override { return resources_; }
    ResultStore& Results() override { return results_; }

    // Within a transaction of the caller. Throws OutdatedTypes (see submit.h).
    std::vector<SubmitReply> SubmitIn(
        Transaction& transaction, std::span<const NewTask> tasks, int flags = 0
    );
    std::vector<SettleReply> SettleIn(
        Transaction& transaction, std::span<const Settlement> settlements
    );
    Result<State> FinishBackgroundIn(Transaction& transaction, const BackgroundFinish& finish);
    std::vector<TaskRecord> RecordsIn(Transaction& transaction, std::span<const TaskId> tasks);

    // For the parts of a submit: see submit.h.
    // resources.cpp
    // Those of the running tasks that are wanted; they run until the transaction ends.
    std::vector<RunningTask> HoldRunning(
        Transaction& transaction, const std::function<bool(const RunningTask&)>& wanted
    );
    // They count for what is known by now of what they need.
    void AdoptRunning(Transaction& transaction, const std::vector<RunningTask>& running);

    Db& db() { return db_; }
    Catalog& catalog() { return catalog_; }
    // Which of the ids are taken, live or finished.
    std::vector<TaskId> Existing(Transaction& transaction, std::span<const TaskId> tasks);
    // Those that are kept, and when to look again, which is not before `earliest` from now.
    std::map<TaskId, Time> KeptUntil(
        Transaction& transaction, std::span<const TaskId> tasks, Duration earliest
    );
    // Of these tasks those that have items in error.
    std::map<TaskId, ItemCounts> ItemsInError(
        Transaction& transaction, std::vector<std::int64_t> tasks
    );
    // Out of the lines, and into the hands of this transaction.
    std::vector<Facts> TakeWaiting(
        Transaction& transaction, std::vector<std::int64_t> ids, std::initializer_list<State> states
    );
    int LaneWith(int lane, bool suspect);
    // Queues in which tasks that had waited are claimable now.
    using Opened = std::vector<std::string>;
    // Sends the changes, and tells those who wait for what they end.
    Opened Apply(Transaction& transaction, const Changes& changes);
    Opened Send(Transaction& transaction, const Changes& changes);

    // wait.cpp, for the parts of a submit as well.
    // The tasks' states where they are terminal. Those that are not cannot end before this
    // transaction does; those that are not there are missing.
    struct HeldTask {
        TenantId tenant;
        std::optional<State> ended;
    };
    using HeldTasks = std::map<TaskId, HeldTask>;
    HeldTasks Hold(Transaction& transaction, std::vector<std::int64_t> tasks);
    static Result<std::vector<WaitMember>> MembersOf(
        std::span<const TaskId> tasks, TenantId tenant, const Beside& beside, const HeldTasks& held
    );
    void WriteWaits(Transaction& transaction, std::span<const NewWait> waits);
    Opened EndWaits(Transaction& transaction, std::vector<NewWait> over);

private:
    // submit.cpp
    enum class Which : std::uint8_t { kEach, kAllOrNone };
    std::vector<SubmitReply> SubmitTogether(
        std::span<const NewTask> tasks, Which which = Which::kEach
    );
    std::vector<SubmitReply> SubmitHeld(std::span<const NewTask> tasks, Which which = Which::kEach);
    void FindPlace(Incoming& one);
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
    void NoteUnderWay(const Marks::Snapshot& look, const Rows& tick);
    bool LookForLate(bool at_leisure);
    std::vector<Rows> ClaimBatch(
        Transaction& transaction,
        std::vector<postgres::Command> commands,
        const Marks::Snapshot& marks
    );
    void TakeReady(
        const ClaimRequest& request, int limit, ClaimReply& reply, std::vector<Taken>& taken
    );
    bool ClaimOnce(
        const ClaimRequest& request,
        int limit,
        const Marks::Snapshot& marks,
        ClaimReply& reply,
        std::vector<Taken>& taken
    );

    // claim_lane.cpp
    void RememberLane(const ClaimRequest& request, std::span<const Taken> taken);
    bool ClaimOnlyLane(
        const ClaimRequest& request,
        int limit,
        const Marks::Snapshot& marks,
        ClaimReply& reply,
        std::vector<Taken>& taken
    );

    // claim_plan.cpp
    struct Planned;
    void ClaimPlanned(
        const ClaimRequest& request, int limit, ClaimReply& reply, std::vector<Taken>& taken
    );
    using Places = std::vector<std::pair<int, std::int64_t>>;  // lanes and positions
    // What a claim wanted that needed a plan, for the next one.
    struct Known {
        std::vector<std::string> names = {};  // of resources, sorted, whether they are there or not
        bool ages = false;                    // some queue lets what waits grow in priority
        int pause = 0;
        int depth = 0;          // of a line that is looked at; 0 = as much as is wanted
        base::Instant noted{};  // when it was last asked what else there is
    };
    struct PlannedClaim {
        std::size_t wanted = 0;        // to be taken by the plan; others may have come first
        bool all = true;               // that was looked at
        bool knew_too_little = false;  // nothing was done
        bool cut = false;              // too little was looked at; nothing was done
        base::Instant looked{};        // when the lines had been read
        Places promoted = {};
        Places heads = {};  // the first that waits
        std::map<int, std::int64_t> passed = {};
    };
    static std::map<int, std::int64_t> PassedOver(const Planned& planned, const ClaimPlan& plan);
    Known KnownNow();
    void Learn(Known known, bool was_too_little);
    Planned LookAtLines(
        Transaction& transaction,
        const ClaimRequest& request,
        int depth,
        const Marks::Snapshot& marks,
        const Known& known
    );
    Planned ReadPlan(const Rows& rows, std::span<const QueueOrder> orders);
    static bool IsEnough(const Planned& planned, const ClaimPlan& plan);
    static bool IsCut(const Planned& planned, const ClaimPlan& plan, int depth, int limit);
    static std::vector<std::string> NamesOf(const Planned& planned);
    void ReadSupplies(
        Transaction& transaction, const ClaimRequest& request, bool holders, Planned& planned
    );
    void Supply(Transaction& transaction, const ClaimRequest& request, Planned& planned);
    void ReadLeads(Transaction& transaction, Planned& planned);
    void SaveLeads(
        Transaction& transaction,
        const Planned& planned,
        const ClaimPlan& plan,
        std::span<const Taken> taken
    );
    void LockPlanned(
        Transaction& transaction,
        const ClaimRequest& request,
        Planned& planned,
        const ClaimPlan& plan
    );
    PlannedClaim ClaimPlannedIn(
        Transaction& transaction,
        const ClaimRequest& request,
        int limit,
        const Marks::Snapshot& marks,
        Known& known,
        ClaimReply& reply,
        std::vector<Taken>& taken
    );
    void NoteNext(
        Transaction& transaction,
        const ClaimRequest& request,
        const Planned& planned,
        const ClaimPlan& plan,
        const Marks::Snapshot& marks,
        ClaimReply& reply
    );
    static void AddHolds(Params& params, const Planned& planned, const ClaimPlan& plan);
    static bool IsRemembered(const Planned& planned, const ClaimPlan& plan);
    // `alone`: and commits.
    void TakePlanned(
        Transaction& transaction,
        const ClaimRequest& request,
        Planned& planned,
        const ClaimPlan& plan,
        bool alone,
        std::vector<Taken>& taken
    );
    std::vector<Explanation> PlanReasons(
        const ClaimRequest& request, int lane, std::int64_t position, bool goes_otherwise
    );

    // resources.cpp
    void AdoptStragglers();
    int ForgetIdleResources(int limit);
    bool IsCrowded(Transaction& transaction, const Planned& planned);
    // What came of letting go: resources that think of tasks (to be written under their locks), and
    // queues in which something waits for what is free now.
    struct Freed {
        std::map<std::string, std::vector<TaskId>> concerned;
        Opened opened;
    };
    Params ReleaseParams(
        const std::vector<std::int64_t>& tasks,
        const std::vector<std::int64_t>& leases,
        bool if_over
    );
    std::map<TaskId, RunningTask> ReadRunning(
        Transaction& transaction, const std::function<bool(const RunningTask&)>& wanted
    );
    static Freed FreedOf(const Rows& rows, const ReleasedTasks& ended);
    Freed ReleaseSlots(Transaction& transaction, const ReleasedTasks& ended);
    Opened LetGo(
        Transaction& transaction,
        const ReleasedTasks& ended,
        const std::vector<Changes::Report>& reports
    );
    Opened LetGo(
        Transaction& transaction,
        Freed freed,
        const ReleasedTasks& ended,
        const std::vector<Changes::Report>& reports
    );
    int LaneNeeding(int lane, const Needs& needs);
    // Those of one order key go one by one: who waits behind others is parked, who has ended lets
    // the next one go.
    void KeepOrder(Transaction& transaction, const Changes& changes);
    void RejoinOrder(Transaction& transaction, const Changes& changes);
    Opened EndOrder(
        Transaction& transaction, const std::map<TaskId, State>& ended, bool plainly = false
    );
    bool GiveUpTurn(TaskId task);
    Opened EndBehind(
        Transaction& transaction, const std::map<TaskId, TaskId>& doomed, Opened opened
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
    std::map<TaskId, ItemCounts> HearItemsOf(
        Transaction& transaction,
        std::span<const Settlement> settlements,
        std::span<const SettleReply> replies,
        std::span<const std::size_t> successes,
        std::vector<std::size_t>& others
    );
    // What is to be done for those that are complete, all together.
    struct Completed {
        std::map<TaskId, State> waited_for, ordered;
        ReleasedTasks released;
        std::optional<Rows> freed;  // what they held was let go of at the same time
    };
    bool SettlePlain(
        Transaction& transaction,
        std::span<const Settlement> settlements,
        std::vector<SettleReply>& replies,
        Completed& completed
    );
    void SettleComplete(
        Transaction& transaction,
        std::span<const Settlement> settlements,
        std::span<const std::size_t> which,
        std::vector<SettleReply>& replies,
        bool release,
        Completed& completed
    );
    SettleReply SettleOne(const Facts& facts, const Settlement& settlement, Changes& changes);
    bool SettleTogether(
        std::span<const Settlement> settlements,
        std::span<const std::size_t> which,
        std::vector<SettleReply>& replies
    );
    void SettleEach(
        std::span<const Settlement> settlements,
        std::span<const std::size_t> which,
        bool committed,
        std::vector<SettleReply>& replies
    );
    SettleReply SettleAlone(const Settlement& settlement, Duration patience);
    SettleReply SettleBlocked(
        Transaction& transaction,
        const Facts& facts,
        const Settlement& settlement,
        Changes& changes,
        std::vector<NewWait>& waits
    );

    // wait.cpp
    // Once this is committed, claims of this process look there again.
    void Ready(Transaction& transaction, const Changes& changes);
    Result<NewWait> MakeChildren(
        Transaction& transaction, const Facts& facts, const Settlement& settlement
    );
    bool Reaches(Transaction& transaction, const std::vector<TaskId>& tasks, TaskId target);
    std::vector<WaitStep> ChainTo(
        Transaction& transaction, const std::vector<TaskId>& tasks, TaskId target
    );
    Opened TellWaiters(Transaction& transaction, const std::map<TaskId, State>& ended);
    std::vector<NewWait> Tell(Transaction& transaction, const std::map<TaskId, State>& ended);
    std::map<TaskId, State> EndThese(
        Transaction& transaction, std::vector<NewWait> over, Opened& opened
    );
    void EndWait(Facts& facts, const WaitEnd& end, const std::string& reason, Changes& changes);
    std::map<TaskId, std::string> FirstFailures(
        Transaction& transaction, const std::vector<std::int64_t>& waiters
    );
    void CancelWhatIsDue();
    void CancelRest() noexcept;  // when an end of a wait here has asked for it

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
    using CancelReasons = std::map<TaskId, std::string>;
    std::map<TaskId, TaskId> Below(Transaction& transaction, std::span<const TaskId> tasks);
    std::map<TaskId, CancelReply> CancelTrees(
        std::span<const TaskId> tasks, std::string_view actor, const std::string& why
    );
    // What was found of them, added to `replies`.
    void CancelOnce(
        Transaction& transaction,
        const CancelReasons& reasons,
        std::string_view actor,
        Changes& changes,
        std::map<TaskId, CancelReply>& replies
    );
    void CancelTaken(
        const std::vector<Facts>& taken,
        std::string_view actor,
        const CancelReasons& reasons,
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
    Announcements announcements_;
    GroupSubmit group_;
    PostgresSchedules schedules_{*this};
    GroupSubmit keyed_group_;        // apart from those that have no key to wait for
    std::mutex held_mutex_;          // the turn of one that waits for others' transactions
    std::atomic<bool> idle_{false};  // the last claim found nothing
    std::mutex quiet_mutex_;
    std::optional<Quiet> quiet_;         // guarded by quiet_mutex_
    std::atomic<bool> rest_due_{false};  // something is in cancel_due
    std::atomic<int> caps_{0};           // submits that are not committed at once
    std::atomic<bool> releases_{false};  // the last that were complete held resources

    std::mutex ids_mutex_;  // guards the four below
    base::Instant ids_taken_{};
    std::int64_t next_id_ = 0;
    std::int64_t last_id_ = -1;
    std::map<std::int64_t, std::int64_t> fresh_;  // reserved here and not yet used: first, last

    EventTables events_{*this};
    PostgresFlows flows_{*this};
    PostgresResources resources_{*this};
    std::atomic<bool> special_{false};  // the last claim had to make a plan
    std::atomic<int> only_lane_{0};     // where all that the last claim took came from
    std::atomic<int> lane_pause_{0};    // claims that do not try it, after one that did in vain
    std::atomic<int> plain_pause_{0};   // likewise of settlements and complete_plain.sql
    std::mutex known_mutex_;
    Known known_;  // guarded by known_mutex_
    ResultTables results_{*this};
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

// What was looked at and is kept: the tasks, and when to look again.
void AddLooks(Params& params, const std::map<TaskId, Time>& kept);
std::vector<std::int64_t> WithoutThose(
    std::span<const TaskId> tasks, const std::map<TaskId, Time>& kept
);

}  // namespace stint::store::pg
