// What is over: start-by deadlines, keys, sessions, periods of history. And the store's self-check.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "store/memory/ops.h"

namespace stint::store::memory {

HousekeepReply Ops::Housekeep(const HousekeepRequest& request) {
    HousekeepReply reply;
    reply.expired_tasks = ExpireUnstarted(request.limit);
    reply.expired_keys = ExpireKeys(request.limit);
    reply.forgotten_sessions = ForgetSessions(request);
    if (request.history) reply.dropped_periods = DropPeriods(request.limit);
    reply.more = reply.expired_tasks >= request.limit || reply.expired_keys >= request.limit ||
                 reply.forgotten_sessions >= request.limit ||
                 static_cast<int>(reply.dropped_periods.size()) >= request.limit;
    return reply;
}

int Ops::ExpireUnstarted(int limit) {
    std::vector<TaskId> late;
    for (const auto& [id, task] : data_.live) {
        if (static_cast<int>(late.size()) >= limit) break;
        const TaskRecord& record = task.record;
        if (IsWaiting(record.state) && record.start_by && *record.start_by <= now_)
            late.push_back(id);
    }
    for (TaskId id : late) {
        Task& task = *Find(id);
        std::string reason = "not started by its deadline, " + base::Iso8601(*task.record.start_by);
        Move(task, Event::kExpire, {.actor = "housekeeping", .reason = reason});
        task.record.reason = reason;
    }
    return static_cast<int>(late.size());
}

int Ops::ExpireKeys(int limit) {
    int expired = 0;
    auto expire = [&](auto& keys, auto until) {
        for (auto key = keys.begin(); key != keys.end() && expired < limit;) {
            if (until(key->second) <= now_) {
                key = keys.erase(key);
                ++expired;
            } else {
                ++key;
            }
        }
    };
    expire(data_.idempotency, [](const IdempotencyKey& key) { return key.expires_at; });
    expire(data_.throttle, [](const ThrottleKey& key) { return key.until; });
    return expired;
}

int Ops::ForgetSessions(const HousekeepRequest& request) {
    std::set<SessionId> holders;
    for (const auto& [id, task] : data_.live) holders.insert(task.record.session);
    int forgotten = 0;
    for (auto session = data_.sessions.begin(); session != data_.sessions.end();) {
        bool old = session->second.over &&
                   session->second.record.renewed_at + request.session_kept <= now_;
        if (old && !holders.contains(session->first) && forgotten < request.limit) {
            session = data_.sessions.erase(session);
            ++forgotten;
        } else {
            ++session;
        }
    }
    return forgotten;
}

// A period is a day of tasks that are kept equally long; it goes as a whole.
std::vector<std::string> Ops::DropPeriods(int limit) {
    using std::chrono::days;
    std::set<std::string> dropped;
    std::set<TaskId> gone;
    for (const auto& [id, task] : data_.finished) {
        // What a live parent may still read stays.
        if (data_.live.contains(task.record.parent)) continue;
        auto day = std::chrono::floor<days>(*task.record.finished_at);
        if (Time(day + days{1}) + task.keep > now_) continue;
        std::string period = fmt::format(
            "{} kept {}", base::Iso8601(Time(day)).substr(0, 10), base::DurationText(task.keep)
        );
        if (!dropped.contains(period) && static_cast<int>(dropped.size()) >= limit) continue;
        dropped.insert(period);
        gone.insert(id);
    }
    for (TaskId id : gone) data_.finished.erase(id);
    std::erase_if(data_.audit, [&](const AuditEntry& entry) { return gone.contains(entry.task); });
    return {dropped.begin(), dropped.end()};
}

// ---- the self-check ----

namespace {

// Replays a task's audit entries; empty when they lead to its state, else where they do not.
std::string Replay(const std::vector<AuditEntry>& entries, State state) {
    std::optional<State> at;
    for (const AuditEntry& entry : entries) {
        if (entry.from != at || Next(at, entry.event) != entry.to) {
            return fmt::format("entry {} ({}) does not follow", entry.seq, EventName(entry.event));
        }
        at = entry.to;
    }
    if (at == state) return {};
    return fmt::format("ends in {}, not in {}", at ? StateName(*at) : "nothing", StateName(state));
}

}  // namespace

std::vector<CheckFinding> Ops::Check() {
    std::vector<CheckFinding> findings;
    auto begin = [&](std::string what) { findings.push_back({std::move(what), {}, true}); };
    auto fail = [&](std::string detail) {
        findings.back().ok = false;
        if (findings.back().detail.empty()) findings.back().detail = std::move(detail);
    };
    std::map<TaskId, std::vector<AuditEntry>> audit;
    for (const AuditEntry& entry : data_.audit) audit[entry.task].push_back(entry);

    begin("the audit log replays to every task's state (I15)");
    for (const auto* tasks : {&data_.live, &data_.finished}) {
        for (const auto& [id, task] : *tasks) {
            std::string wrong = Replay(audit[id], task.record.state);
            if (!wrong.empty()) fail(fmt::format("task {}: {}", id.value(), wrong));
        }
    }
    begin("live tasks are not terminal, finished ones are");
    for (const auto& [id, task] : data_.live) {
        if (IsTerminal(task.record.state)) fail(fmt::format("task {} is terminal", id.value()));
    }
    for (const auto& [id, task] : data_.finished) {
        if (!IsTerminal(task.record.state))
            fail(fmt::format("task {} is not terminal", id.value()));
    }
    begin("a running task has a token, a session and one open attempt (I5)");
    for (const auto& [id, task] : data_.live) {
        bool runs = task.record.state == State::kInProgress;
        auto open =
            std::count_if(task.attempts.begin(), task.attempts.end(), [](const auto& attempt) {
                return attempt.end == AttemptEnd::kRunning;
            });
        bool right =
            runs ? task.token.valid() && data_.sessions.contains(task.record.session) && open == 1
                 : !task.record.session.valid() && open == 0;
        if (!right) fail(fmt::format("task {} is {}", id.value(), StateName(task.record.state)));
    }
    begin("each unique key stands for one live task (I7)");
    for (const auto& [key, id] : data_.unique) {
        auto task = data_.live.find(id);
        if (task == data_.live.end() || task->second.record.unique_key != std::get<2>(key)) {
            fail(
                fmt::format("key {} stands for task {}", base::Quoted(std::get<2>(key)), id.value())
            );
        }
    }
    return findings;
}

}  // namespace stint::store::memory
