// What is over: start-by deadlines, keys, sessions, periods. Bounded per call.
#include "base/text.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/queries.h"

namespace stint::store::lite {

HousekeepReply Ops::Housekeep(const HousekeepRequest& request) {
    HousekeepReply reply;
    reply.expired_tasks = ExpireUnstarted(request.limit);
    reply.expired_keys = ExpireKeys(request.limit);
    reply.forgotten_sessions = ForgetSessions(request);
    const int forgotten_resources = ForgetIdleResources(request.limit);
    const int lanes = ForgetLanes(request.limit);
    reply.more = reply.expired_tasks >= request.limit || reply.expired_keys >= request.limit ||
                 reply.forgotten_sessions >= request.limit ||
                 forgotten_resources >= request.limit || lanes >= request.limit;
    return reply;
}

std::optional<std::string> Ops::DropExpiredPeriod() {
    std::vector<std::int64_t> in_the_way;
    auto dropped = periods_.DropExpired(now_, [&](std::int64_t history) {
        sqlite::Rows rows = Sql("ordered_dropped", history).Query();
        while (rows.Next()) in_the_way.push_back(rows.Int(0));
    });
    // A dead one that nobody can retry or cancel any more keeps nobody waiting.
    for (std::int64_t task : in_the_way) GiveUpTurn(TaskId(task));
    if (dropped) newest_finished_.reset();
    return dropped;
}

// Those that placements of long ago have left behind: claims look at every lane there is.
int Ops::ForgetLanes(int limit) {
    WriteMember();  // what was only counted so far
    std::vector<std::int64_t> unused;
    {
        sqlite::Rows rows = Sql("lane_unused").Query(limit);
        while (rows.Next()) unused.push_back(rows.Int(0));
    }
    for (std::int64_t lane : unused) {
        Sql("lane_need_remove").Run(lane);
        Sql("lane_tally_remove").Run(lane);
        Sql("lane_free").Run(lane);
    }
    if (!unused.empty()) lanes_.Forget();
    return static_cast<int>(unused.size());
}

int Ops::ExpireUnstarted(int limit) {
    std::vector<std::int64_t> ids;
    {
        sqlite::Rows rows = Sql("start_by_passed").Query(Micros(now_), limit);
        while (rows.Next()) ids.push_back(rows.Int(0));
    }
    TaskRow row;
    for (std::int64_t id : ids) {
        if (!Load(TaskId(id), row)) continue;
        row.reason = "not started by its deadline, " + base::Iso8601(*row.start_by);
        Move(row, Event::kExpire, {.actor = "housekeeping", .reason = row.reason, .session = {}});
        Persist(row);
    }
    return static_cast<int>(ids.size());
}

int Ops::ExpireKeys(int limit) {
    struct Key {
        std::int64_t tenant;
        std::string type;
        std::string key;
    };
    std::vector<Key> idempotency;
    {
        sqlite::Rows rows = Sql("idem_expired").Query(Micros(now_), limit);
        while (rows.Next()) idempotency.push_back({rows.Int(0), {}, rows.String(1)});
    }
    for (const Key& key : idempotency) Sql("idem_remove").Run(key.tenant, key.key);
    std::vector<Key> throttle;
    {
        sqlite::Rows rows = Sql("throttle_expired").Query(Micros(now_), limit);
        while (rows.Next()) throttle.push_back({rows.Int(0), rows.String(1), rows.String(2)});
    }
    for (const Key& key : throttle) Sql("throttle_remove").Run(key.tenant, key.type, key.key);
    int turns = Sql("ordered_forget").Run(Micros(now_ - limits::kRetention), limit);
    return static_cast<int>(idempotency.size() + throttle.size()) + turns;
}

int Ops::ForgetSessions(const HousekeepRequest& request) {
    std::vector<std::int64_t> old;
    {
        Time until = now_ - request.session_kept;
        sqlite::Rows rows = Sql("session_old").Query(Micros(until), request.limit);
        while (rows.Next()) old.push_back(rows.Int(0));
    }
    for (std::int64_t no : old) Sql("session_remove").Run(no);
    if (!old.empty()) {
        sessions_.clear();
        session_by_no_.clear();
    }
    return static_cast<int>(old.size());
}

}  // namespace stint::store::lite
