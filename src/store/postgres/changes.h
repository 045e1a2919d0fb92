// What a transaction has learned about tasks that it took or locked, and what becomes of them.
//
// Every change of state but the hot ones (submit, claim, complete) goes the same way: facts are
// read under lock, the model decides, and Changes writes all of it in batches, audit included.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "store/postgres/catalog.h"
#include "store/postgres/db.h"
#include "store/postgres/records.h"
#include "store/resources.h"

namespace stint::store::pg {

// A row of lease_facts, take_waiting or take_outside.
struct Facts {
    TaskId id;
    int lane = 0;
    int policy = 0;
    int flags = 0;
    int attempt = 0;   // used up; of a held task the running one is not included
    int claim_no = 0;  // likewise
    int generation = 1;
    int crash_count = 0;
    std::optional<Time> crash_from;
    State state = State::kOpen;  // of a waiting or outside task
    std::string error;           // JSON
    LeaseToken token;            // of a held or outside task
    SessionId session;
    NodeId node;
    std::optional<Time> claimed_at;
    Time now{};
    std::optional<Duration> timeout;
    Time due_at{};
    std::int64_t pos = 0;
    Time created_at{};
    int explicit_mask = 0;
    std::string hostname;       // of the holder
    std::string cancel_reason;  // of a held task that is to stop

    bool cancel_asked() const { return (flags & kCancelAsked) != 0; }
    bool alone() const { return (flags & kAlone) != 0; }
};
std::vector<Facts> ReadFacts(const Rows& rows);

// How an attempt went, for its own row.
struct Evidence {
    AttemptEnd end = AttemptEnd::kComplete;
    bool accepted = true;  // the holder reported it; false: somebody else noticed its end
    std::string error;     // JSON
    std::optional<int> exit_code, exit_signal;
    std::string stderr_tail;
};

// An attempt that held something has ended: how, and which lease it has left. Others may be behind
// it there.
struct Released {
    AttemptEnd end = AttemptEnd::kLost;
    std::int64_t lease = 0;
};
using ReleasedTasks = std::map<TaskId, Released>;

class Changes {
public:
    explicit Changes(Catalog& catalog) : catalog_(catalog) {}

    // The task leaves the lease that holds it.
    void LeaveLease(const Facts& facts);
    // The attempt that just ended without ending its task.
    void AddAttempt(const Facts& facts, const Evidence& evidence, State to);

    // Counters in `after` are those that the task has from now on.
    struct Waiting {
        Facts after;
        Time due{};
        bool ready() const { return due <= after.now; }
    };
    void AddWaiting(const Waiting& waiting);

    // A resource does not work, as an attempt found.
    struct Report {
        std::string resource;
        BreakerEvidence evidence;
        Duration closed_for{};
    };
    void AddReport(Report report) { reports_.push_back(std::move(report)); }
    const std::vector<Report>& reports() const { return reports_; }
    // Those that held resources, and how their attempts ended.
    const ReleasedTasks& released() const { return released_; }
    void AddReleased(ReleasedTasks released) { released_.merge(released); }

    struct Finish {
        Facts after;
        State state = State::kDead;
        std::optional<Evidence> evidence;  // none: it ended without an attempt
        std::string output;
        bool warning = false;
        std::string error;  // JSON
        std::string reason;
    };
    void AddFinish(const Finish& finish);

    struct Outside {
        Facts after;
        State state = State::kBackground;
        std::optional<Time> expires_at;
        std::string reason;
    };
    void AddOutside(const Outside& outside);

    struct Entry {
        TaskId task;
        TenantId tenant;
        Event event;
        std::optional<State> from;
        State to;
        int attempt;
        int generation;
        SessionId session;
        std::string actor;
        std::string reason;
    };
    void AddAudit(Entry entry);

    // Sends everything with the transaction's next statement or commit.
    void Defer(Transaction& transaction, const Sql& sql) const;
    // Which tasks are made ready: their places may lie below what claims of this process start
    // from.
    const std::vector<Waiting>& waiting() const { return waiting_; }
    const std::vector<Finish>& finished() const { return finished_; }

private:
    struct AttemptRow {
        Facts facts;
        Evidence evidence;
        State to;
    };
    Params AttemptParams() const;
    Params WaitingParams() const;
    Params FinishParams(std::span<const Finish> finished) const;
    Params OutsideParams() const;
    Params AuditParams() const;

    Catalog& catalog_;
    std::vector<std::pair<std::int64_t, TaskId>> leaving_;  // lease key, task
    std::vector<AttemptRow> attempts_;
    std::vector<Waiting> waiting_;
    std::vector<Finish> finished_;
    std::vector<Outside> outside_;
    std::vector<Entry> audit_;
    ReleasedTasks released_;
    std::vector<Report> reports_;
};

}  // namespace stint::store::pg
