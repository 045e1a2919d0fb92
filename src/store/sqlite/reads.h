// The store's questions, on a reader's connection. Each opens one read transaction: a consistent
// view.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "sqlite/connection.h"
#include "store/sqlite/period.h"
#include "store/sqlite/row.h"
#include "store/store.h"

namespace stint::store::lite {

class Reads {
public:
    Reads(const std::string& path, base::Clock& clock);

    std::string Identity();
    std::vector<TypeRecord> Types();
    std::vector<SessionRecord> Sessions();
    std::vector<NodeRecord> Nodes();
    std::vector<QueueRecord> Queues();

    std::optional<TaskRecord> Get(TaskId task);
    std::optional<TaskId> FindByIdempotencyKey(TenantId tenant, std::string_view key);
    std::optional<SettleReply> SettledBy(TaskId task, LeaseToken token);
    TaskPage List(const ListRequest& request);
    std::map<CountKey, std::int64_t> Counts(const TaskFilter& filter);
    std::vector<AttemptRecord> Attempts(TaskId task);
    std::vector<WaitMember> Waited(TaskId task);
    std::vector<AuditEntry> Audit(const AuditRequest& request);
    std::vector<FinishedTask> Finished(std::span<const TaskId> tasks);
    std::vector<Explanation> Explain(TaskId task, const ClaimRequest& request);
    std::vector<Crowd> Crowds(const std::string& queue);
    std::vector<CheckFinding> Check();

    sqlite::Connection& db() { return db_; }

private:
    struct LaneNames {
        TenantId tenant;
        std::string queue;
        std::string type;
        Placement placement;
    };
    class View;  // a read transaction with fresh periods

    sqlite::Statement& Sql(std::string_view name);
    sqlite::Statement& Sql(std::string_view name, std::int64_t period);
    const LaneNames& LaneAt(std::int64_t id);
    bool LoadFinished(TaskId id, TaskRow& row);
    TaskRecord ToRecord(TaskRow& row);
    int PendingOf(TaskId task);  // how many it waits for
    bool SessionIsLive(SessionId session, Time now);
    std::optional<TaskRecord> GetInView(TaskId task);
    CheckFinding NoRows(std::string_view what, std::string_view query);
    CheckFinding NoRows(std::string_view what, std::string_view query, std::int64_t period);
    CheckFinding CheckPolicies();
    CheckFinding CheckAudit();
    bool ReplayAudit(std::int64_t task, State state, std::string& why);

    base::Clock& clock_;
    sqlite::Connection db_;
    PeriodList periods_;
    std::unordered_map<std::int64_t, LaneNames> lanes_;  // never change once made
};

}  // namespace stint::store::lite
