// The store's changes, on the writer's connection inside a transaction that the writer owns.
//
// Every state change goes through Move(): it asks the transition table, writes the audit entry and
// keeps the tallies. What is remembered in memory (lanes, sessions, settings, counters) is exact
// because nobody else writes; Forget() after a rollback makes it read again.
#pragma once

#include <stint/item.h>

#include <algorithm>
#include <bit>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "model/decide.h"
#include "sqlite/connection.h"
#include "sqlite/gate.h"
#include "store/block.h"
#include "store/flow_work.h"
#include "store/resource_book.h"
#include "store/sqlite/conditions.h"
#include "store/sqlite/lanes.h"
#include "store/sqlite/period.h"
#include "store/sqlite/process.h"
#include "store/sqlite/queries.h"
#include "store/sqlite/recent.h"
#include "store/sqlite/row.h"
#include "store/store.h"

namespace stint::store::lite {

// A request with what can be found out without the writer.
struct PreparedTask {
    const NewTask* task = nullptr;
    std::string invalid;      // why it is refused; empty = it is fine
    std::string hash;         // when it has an idempotency key
    std::size_t index = 0;    // of its reply
    bool waited_for = false;  // its maker will wait for it
};
// In the order in which they are to be stored: each after those that it waits for.
std::vector<PreparedTask> Prepare(std::span<const NewTask> tasks);
// Few, and each is a row and nothing else: no key by which it is known, nothing that it waits for.
bool ArePlain(std::span<const NewTask> tasks);

class Ops {
public:
    Ops(sqlite::Connection& db, base::Clock& clock, base::Random& random);

    // Rows are remembered as long as SQLite tells of each that is changed. A connection has one
    // hook for that, and a host that was let at it may have taken it.
    void WatchRows();

    // What members leave to be written (audit entries, tallies) is gathered and written once for
    // all of them: before the commit, and before a member that may look at it.
    void BeginGroup();
    void WriteGathered();
    // Between members: new rows, which a plain submit leaves, and others may look at. MakeRoom()
    // writes them when there are many.
    void WriteArrivals();
    void MakeRoom();

    // Around each member of a group.
    void BeginMember();
    void EndMember();    // gathers
    void WriteMember();  // at once, when a part of the member may be rolled back alone
    void Forget();       // after a rollback

    TaskId ReserveIds(int count);
    void PublishTypes(std::span<const TypeDefaults> types);
    // Gives tasks that came before their type was known its defaults; returns how many, at most
    // `limit`.
    int ResolveUnknown(std::span<const TypeDefaults> types, int limit);
    std::vector<SubmitReply> Submit(std::span<const PreparedTask> tasks);
    // The same, and the rows are left to be written with the group. REQUIRES: they are plain.
    std::vector<SubmitReply> SubmitPlain(std::span<const PreparedTask> tasks);
    std::vector<SubmitReply> SubmitAll(std::span<const PreparedTask> tasks);

    NodeId OpenSession(const NewSession& session, const Opener& opener);
    RenewReply Renew(const RenewRequest& request);
    void CloseSession(SessionId session);
    // At the owner's start: sessions whose process is gone need not wait for their lease's end.
    int LapseSessionsOfTheDead();

    ClaimReply Claim(const ClaimRequest& request);
    std::vector<SettleReply> Settle(std::span<const Settlement> settlements);
    SettleReply SettleOne(const Settlement& settlement);
    ReclaimReply Reclaim(const ReclaimRequest& request);
    Result<State> FinishBackground(const BackgroundFinish& finish);

    std::vector<CancelReply> Cancel(
        std::span<const TaskId> tasks, std::string_view actor, std::string_view reason
    );
    std::vector<RetryReply> Retry(std::span<const TaskId> tasks, std::string_view actor);
    std::vector<RetryReply> Discard(std::span<const TaskId> tasks, std::string_view actor);
    Result<void> Edit(TaskId task, const TaskEdit& edit, std::string_view actor);

    std::optional<QueueSettings> ChangeQueue(const QueueChange& change, std::string_view actor);

    // What keeps a waiting task from a claim, of what a claim's plan decides: resources.cpp.
    std::vector<Explanation> PlanReasons(TaskId task, const ClaimRequest& claimer);
    // All resources. What is changed in it is written down with the member.
    ResourceBook& Book();
    // Running tasks count for what was set after they had started.
    void AdoptRunning();
    std::int64_t WaitingFor(const std::string& resource);
    bool SetOrder(const QueueOrder& order);
    bool RemoveOrder(std::string_view queue);
    HousekeepReply Housekeep(const HousekeepRequest& request);  // all but the periods
    // Drops one period whose time is over; returns its table's name.
    std::optional<std::string> DropExpiredPeriod();

    // For flows (flows.cpp).
    FlowTables::Hold Holds(TaskId task, LeaseToken token);
    std::optional<FlowTables::TaskState> StateAndTenant(TaskId task);
    // A task that is not due becomes it; its queue. Nothing: it does not sleep.
    std::optional<std::string> WakeSleeper(
        TaskId task, std::string_view actor, const std::string& reason
    );
    int ForgetFlows(int limit);
    // results.cpp
    bool IsHeld(const Held& held);
    ItemCounts ItemsOf(TaskId task);
    bool ForgetResults(int limit);  // of tasks whose records are gone; true: there may be more
    std::optional<Time> KeptUntil(TaskId task, Duration earliest);

    sqlite::Connection& db() { return db_; }
    Time now() const { return now_; }  // of the current member
    // Joins wait for other types now.
    void ForgetMembers() { members_.reset(); }
    sqlite::Gate& gate() { return gate_; }

private:
    struct Why {
        std::string_view actor;
        std::string_view reason;
        SessionId session;
    };
    // How an attempt ended, for its row.
    struct Ending {
        AttemptEnd end = AttemptEnd::kComplete;
        std::string error;  // JSON
        std::optional<int> exit_code, exit_signal;
        std::string_view stderr_tail;
        bool by_holder = false;  // its token stands for an accepted outcome
    };
    struct SessionFacts {
        std::int64_t no = 0;
        SessionId id;
        NodeId node;
        SessionState state = SessionState::kLive;
        Time lease_until{};
        std::string hostname;
    };
    struct Delta {
        std::int64_t period;
        std::int64_t lane;
        State state;
        int by;
    };
    // Of the audit log.
    struct Entry {
        std::int64_t period;
        std::int64_t seq;
        TaskId task;
        TenantId tenant;
        std::optional<State> from;
        State to;
        Event event;
        int attempt;
        int generation;
        Time at;
        std::optional<Bytes16> session;
        std::string actor;
        std::string reason;
    };
    // Of an attempt that is over.
    struct AttemptRow {
        std::int64_t period;
        TaskId task;
        int claim_no;
        int attempt;
        int generation;
        std::optional<Bytes16> session;
        NodeId node;
        Time started_at;
        Time finished_at;
        AttemptEnd end;
        State state;
        bool alone;
        std::optional<Bytes16> token;
        std::string error;
        std::optional<int> exit_code, exit_signal;
        std::string stderr_tail;
    };
    struct Slot {
        std::int64_t period = 0;  // of none
        TaskId task;
        std::string resource;
        int units;
    };
    struct Claimed {
        TaskId task;
        Bytes16 token;
        std::int64_t group;  // 0: it shares nothing
    };
    struct Head {
        std::int64_t id;
        int urgency;
        std::int64_t position;
        int group = -1;         // of the plan, as in its picks
        std::size_t turn = 0;   // in the plan
        std::size_t bytes = 0;  // of its input, where that was read
    };
    // One lane, read in pieces.
    struct Source {
        Lane* lane = nullptr;
        std::vector<Head> piece{};
        std::size_t at = 0;  // in the piece
        int urgency = -1;    // of the last row that was read
        std::int64_t position = 0;
        bool more = true;
    };

    sqlite::Statement& Sql(std::string_view name) { return lite::Sql(db_, name); }
    sqlite::Statement& Sql(std::string_view name, std::int64_t period) {
        return lite::Sql(db_, name, period);
    }

    // ---- state (ops.cpp) ----
    bool Load(TaskId id, TaskRow& row);
    bool LoadFinished(TaskId id, TaskRow& row);
    bool Exists(TaskId id);
    void Move(TaskRow& row, std::optional<State> from, Event event, const Why& why);
    void Move(TaskRow& row, Event event, const Why& why) { Move(row, row.state, event, why); }
    void Audit(
        const TaskRow& row, std::optional<State> from, State to, Event event, const Why& why
    );
    void Persist(TaskRow& row);  // where its state belongs
    void Finish(TaskRow& row);
    void ToWaiting(TaskRow& row, Time due_at);  // sets due_at, wait and the lane's hints
    void NoteWaiting(const TaskRow& row);
    void LeaveLater(const TaskRow& row);
    void ChangeLane(TaskRow& row, std::string_view queue, const Placement& placement);
    void EndAttempt(const TaskRow& row, const Ending& ending);
    void RaiseIds(TaskId used);
    void ReleaseKeys(const TaskRow& row);
    void TellJoins(const TaskRow& row);
    void Count(std::int64_t period, std::int64_t lane, State state, int by);
    std::int64_t NextSeq();
    std::int64_t TakeIds(int count);
    Duration KeepOf(State state, const std::string& queue);
    Duration KeepRecords(const std::string& queue);  // attempts and audit
    static constexpr std::size_t kRowsAtOnce = 64;
    static constexpr std::size_t kBytesAtOnce = 1 << 20;  // of what has ended, inputs and outputs
    // Many rows with one statement: most of what a statement costs, it costs once.
    template <class Row, class Fill>
    void InsertRows(std::string_view name, std::span<const Row> rows, const Fill& fill);
    void RunForAll(std::string_view name, std::span<const TaskId> tasks);
    // Those that follow each other without a gap, as (first, last): a statement over them is one
    // walk. Others are looked for one by one.
    template <class Run>
    static void ForEachRun(std::vector<TaskId> tasks, const Run& run);
    void AddTallies(std::vector<Delta>& deltas);
    void WriteEntries(std::vector<Entry>& entries);
    const QueueSettings* QueueOf(const std::string& name);
    const TypeDefaults* TypeOf(const std::string& name);
    SessionFacts* FindSession(SessionId id);
    bool IsLive(const SessionFacts& session) const {
        return session.state < SessionState::kClosed && session.lease_until > now_;
    }
    const SessionFacts* SessionAt(std::int64_t no);
    std::int64_t WaitingIn(const std::string& queue);

    // ---- submit (submit.cpp) ----
    SubmitReply SubmitOne(const PreparedTask& prepared, const Beside& beside);
    std::optional<SubmitReply> KnownByKey(const PreparedTask& prepared);
    std::optional<SubmitReply> KnownByUnique(const NewTask& task);
    std::optional<SubmitReply> KnownByDebounce(const NewTask& task);
    SubmitReply Insert(
        const PreparedTask& prepared, const Resolved& resolved, const std::vector<WaitMember>& after
    );
    void Arrive(TaskRow row);
    void WriteOwnArrivals();
    void Remember(const PreparedTask& prepared, const SubmitReply& reply);
    SubmitReply Replace(TaskRow& row, const NewTask& task, Time due_at);
    void ApplyDefaults(TaskRow& row, const TypeDefaults& defaults);

    // ---- claim (claim.cpp) ----
    LaneFacts FactsOf(const Lane& lane);
    void PromoteDue(std::span<Lane* const> lanes);
    const Lane::Later& FirstLater(Lane& lane, bool suspects);
    int Promote(Lane& lane, bool suspects, Time until, int most);
    void Refill(Source& source, const Claimer& claimer, int size);
    std::vector<Head> Heads(std::span<Lane* const> lanes, const Claimer& claimer, int limit);
    Lease Take(TaskId id, const SessionFacts& session, bool alone, std::int64_t group);
    void WriteClaims(const SessionFacts& session, bool alone);
    std::optional<sqlite::Blob> TokenOf(std::int64_t task) const;
    bool SuspectsWaiting(std::span<Lane* const> lanes, ClaimRequest request);

    // ---- resources and order (resources.cpp) ----
    struct Lines {
        std::vector<WaitingLine> lines;
        std::vector<std::vector<Head>> heads;
        std::vector<Lane*> lanes;
    };
    bool NeedsPlan(std::span<Lane* const> lanes, const ClaimRequest& request);
    WaitingLine LineOf(const Lane& lane, int priority);
    Lines LinesOf(std::span<Lane* const> lanes, const Claimer& claimer, Offer& offer, int depth);
    void ReadLine(
        const Lane& lane,
        int urgency,
        const Claimer& claimer,
        int depth,
        WaitingLine& line,
        std::vector<Head>& heads
    );
    Offer OfferTo(const ClaimRequest& request, std::span<Lane* const> lanes);
    std::vector<Head> PlannedHeads(
        std::span<Lane* const> lanes,
        const Claimer& claimer,
        const ClaimRequest& request,
        int limit,
        std::vector<int>& seats,
        ClaimReply& reply
    );
    void TakeSlots(
        std::span<const Head> heads, std::span<const int> seats, std::vector<Lease>& leases
    );
    void WriteSlots();
    void ReleaseSlots(TaskId task, AttemptEnd end);
    void OpenForFreed();  // the queues whose tasks wait for what was let go of
    int ForgetIdleResources(int limit);
    void SaveBook();
    void Place(TaskRow& row, const Placement& placement);  // its order key
    void JoinOrderAgain(const TaskRow& row);               // it was over
    bool IsFirst(const TaskRow& row);
    void ReadOrder(TaskId task, Placement& placement);
    void EndOrder(const TaskRow& row);  // it is terminal
    bool GiveUpTurn(TaskId task);       // false: it has none
    void NextInOrder(std::int64_t tenant, std::string_view key);

    // ---- settle, reclaim (settle.cpp, reclaim.cpp) ----
    SettleReply SettleNext(const Settlement& settlement);
    // While the ends of attempts are gathered, nothing may look at those tasks.
    void BeginEnd(const Settlement& settlement);
    void WriteEnds();
    bool HeldBy(const TaskRow& row, const Settlement& settlement);
    SettleReply SettleComplete(TaskRow& row, const Settlement& settlement);
    SettleReply ApplySettlement(TaskRow& row, const Settlement& settlement);
    struct Doomed {
        enum class Why : std::uint8_t { kSessionOver, kTimedOut, kBackgroundOver };
        std::int64_t task;
        Why why;
    };
    std::vector<Doomed> FindDoomed(const ReclaimRequest& request, ReclaimReply& reply);
    void MoveDoomed(const Doomed& doomed, const ReclaimRequest& request, ReclaimReply& reply);
    void ReclaimCrashed(TaskRow& row, Reclaimed& report);
    void ReclaimUnstarted(TaskRow& row, Reclaimed& report);
    void ReclaimTimedOut(TaskRow& row, Reclaimed& report);
    void ReclaimBackground(TaskRow& row, Reclaimed& report);
    void BackToWaiting(TaskRow& row, Duration delay);
    Disposition Decide(TaskRow& row, const Settlement& settlement);
    bool SignalCame(TaskId task);  // that the flow is about to sleep for
    void CountCrash(TaskRow& row);

    // ---- waits (wait.cpp) ----
    Result<std::vector<WaitMember>> MembersOf(
        std::span<const TaskId> tasks, TenantId tenant, const Beside& beside
    );
    Result<std::vector<WaitMember>> MakeChildren(const TaskRow& row, const Settlement& settlement);
    Result<std::vector<WaitMember>> TryMakeChildren(
        const TaskRow& row, const Settlement& settlement
    );
    WaitVerdict Await(
        TaskRow& row, const WaitOn& wait, const std::vector<WaitMember>& members, bool started
    );
    void TellWaiters(const TaskRow& ended);
    void TellWaitersOf(TaskId ended, State state);
    void EndWaitIfOver(TaskRow& waiter);
    void EndWait(TaskRow& waiter, const WaitEnd& end);
    std::vector<WaitLink> LinksOf(TaskId task);
    std::vector<TaskId> Descendants(TaskId task);
    std::vector<std::int64_t> PeriodsSince(TaskId task);

    // ---- operators (operate.cpp) ----
    CancelReply CancelTree(TaskId task, std::string_view actor, std::string_view reason);
    CancelReply CancelOne(TaskId task, std::string_view actor, std::string_view reason);
    RetryReply RetryOne(TaskId task, std::string_view actor);
    RetryReply DiscardOne(TaskId task, std::string_view actor);
    int ExpireUnstarted(int limit);
    int ExpireKeys(int limit);
    int ForgetSessions(const HousekeepRequest& request);
    int ForgetLanes(int limit);

    sqlite::Connection& db_;
    base::Clock& clock_;
    std::set<std::string> unreadable_;  // retry policies that sweeps have met
    base::Random& random_;
    sqlite::Gate gate_;
    Lanes lanes_;
    Periods periods_;
    Time now_{};  // of the current member

    std::int64_t seq_next_ = 0;
    std::int64_t seq_end_ = 0;
    std::int64_t given_out_ = 1;           // below it, ids were given out; outlives rollbacks
    std::optional<std::int64_t> next_id_;  // the counter, when it was seen
    std::optional<std::int64_t> newest_finished_;  // no history row has a higher id
    std::vector<Delta> deltas_;                    // of the current member
    std::vector<Entry> entries_;                   // of the current member
    bool gathers_ends_ = false;
    std::vector<AttemptRow> attempts_;  // gathered, as the next two
    std::vector<TaskRow> finished_;     // in use: the first finished_count_
    std::vector<TaskId> releasing_;     // their slots
    std::size_t finished_count_ = 0;
    std::size_t finished_bytes_ = 0;
    std::vector<Claimed> claimed_;  // by the claim that goes on; sorted when they are written
    RecentRows recent_;
    std::vector<Slot> slots_;          // of the claim that goes on
    std::optional<bool> any_results_;  // of any task, in the current member
    // New rows that are not in the table yet: the first so many were left by earlier members.
    std::vector<TaskRow> arrivals_;
    std::size_t arrivals_before_ = 0;
    std::size_t arrivals_bytes_ = 0;
    std::vector<Delta> gathered_deltas_;
    std::vector<Entry> gathered_entries_;
    std::optional<std::unordered_map<std::string, QueueSettings>> queues_;
    std::optional<std::unordered_map<std::string, TypeRecord>> types_;
    std::optional<std::set<std::pair<TenantId, std::string>>> members_;  // of joins: their types
    std::unordered_map<SessionId, SessionFacts> sessions_;
    std::unordered_map<std::int64_t, SessionId> session_by_no_;
    std::vector<std::string> opened_;              // queues, by the ends of waits
    std::vector<std::pair<TaskId, State>> ended_;  // whose waiters are being told
    std::optional<ResourceBook> book_;
    std::set<std::string> freed_;  // resources
    bool dead_letters_ = false;    // those behind a dead one are being ended
    TaskRow row_;                  // scratch of the hot paths: its strings keep their memory
};

template <class Run>
void Ops::ForEachRun(std::vector<TaskId> tasks, const Run& run) {
    std::ranges::sort(tasks);
    for (auto first = tasks.begin(); first != tasks.end();) {
        auto last = first;
        while (last + 1 != tasks.end() && (last + 1)->value() == last->value() + 1) ++last;
        run(first->value(), last->value());
        first = last + 1;
    }
}

template <class Row, class Fill>
void Ops::InsertRows(std::string_view name, std::span<const Row> rows, const Fill& fill) {
    for (std::size_t at = 0; at < rows.size();) {
        const std::int64_t period = rows[at].period;
        std::size_t same = 1;
        while (same < kRowsAtOnce && at + same < rows.size() && rows[at + same].period == period) {
            ++same;
        }
        const std::size_t end = at + std::bit_floor(same);  // few statements are kept
        sqlite::Statement& insert = SqlRows(db_, name, period, end - at);
        int index = 0;
        for (; at < end; ++at) fill(insert, index, rows[at]);
        insert.RunFilled(index);
    }
}

}  // namespace stint::store::lite
