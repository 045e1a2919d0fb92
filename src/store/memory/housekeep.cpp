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
    const int forgotten_resources = ForgetIdleResources(request.limit);
    if (request.history) reply.dropped_periods = DropPeriods(request.limit);
    reply.more = reply.expired_tasks >= request.limit || reply.expired_keys >= request.limit ||
                 reply.forgotten_sessions >= request.limit ||
                 forgotten_resources >= request.limit ||
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

// What who waited for it, or a flow whose step has not ended, may still read. A parent that is no
// flow may read all its subtasks.
std::set<TaskId> Ops::MayBeRead() const {
    std::set<TaskId> read;
    for (const auto& [id, task] : data_.live) {
        if (!task.wait) continue;
        for (const WaitMember& member : task.wait->members) read.insert(member.task);
    }
    for (const auto& [id, flow] : data_.flows) {
        if (!data_.live.contains(id)) continue;
        for (const FlowStep& step : flow.steps) {
            if (step.state == StepState::kOpen && step.task.valid()) read.insert(step.task);
        }
    }
    return read;
}

// A period is a day of tasks that are kept equally long; it goes as a whole.
std::vector<std::string> Ops::DropPeriods(int limit) {
    using std::chrono::days;
    std::set<std::string> dropped;
    std::set<TaskId> gone;
    const std::set<TaskId> read = MayBeRead();
    for (const auto& [id, task] : data_.finished) {
        if (read.contains(id)) continue;
        TaskId parent = task.record.parent;
        if (data_.live.contains(parent) && !data_.flows.contains(parent)) continue;
        auto day = std::chrono::floor<days>(*task.record.finished_at);
        if (Time(day + days{1}) + task.keep > now_) continue;
        std::string period = fmt::format(
            "{} kept {}", base::Iso8601(Time(day)).substr(0, 10), base::DurationText(task.keep)
        );
        if (!dropped.contains(period) && static_cast<int>(dropped.size()) >= limit) continue;
        dropped.insert(period);
        gone.insert(id);
    }
    for (TaskId id : gone) {
        // A dead one that nobody can retry or cancel any more keeps nobody waiting.
        LeaveOrder(data_.finished.at(id));
        data_.finished.erase(id);
        data_.results.of.erase(id);
    }
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
    begin("each order key has one line, of tasks that are not over or block it");
    for (const auto& [key, line] : data_.ordered) {
        for (const auto& [number, id] : line) {
            Task* task = Find(id);
            bool right = task != nullptr && task->order_no == number &&
                         task->record.placement.order_key == key.second;
            if (!right) fail(fmt::format("task {} in the line of {}", id.value(), key.second));
        }
    }
    JudgeResources(findings);
    JudgeWaits(findings);
    JudgeFlows(findings);
    return findings;
}

namespace {

void Fail(CheckFinding& finding, std::string detail) {
    finding.ok = false;
    if (finding.detail.empty()) finding.detail = std::move(detail);
}

}  // namespace

void Ops::JudgeResources(std::vector<CheckFinding>& findings) {
    CheckFinding held{.what = "what is held of resources is what running tasks need (I6)"};
    CheckFinding most{.what = "no more of a resource is held than its capacity (I6)"};
    const ResourceBook& book = data_.resources;
    for (const auto& [name, entry] : book.entries) {
        int units = 0;
        for (const auto& [id, of] : entry.holders) {
            units += of;
            auto task = data_.live.find(id);
            if (task == data_.live.end() || task->second.record.state != State::kInProgress) {
                Fail(held, fmt::format("{} of {} held by task {}", of, name, id.value()));
            }
        }
        if (units != entry.held) {
            Fail(held, fmt::format("{}: {} units held, {} counted", name, units, entry.held));
        }
        std::optional<int> capacity = book.SettingsOf(entry).capacity;
        if (capacity && units > std::max(*capacity, entry.resource.state.over)) {
            Fail(most, fmt::format("{}: capacity {}, {} held", name, *capacity, units));
        }
    }
    for (const auto& [id, task] : data_.live) {
        const TaskRecord& record = task.record;
        if (record.state != State::kInProgress) continue;
        for (const Need& need : book.NeedsOf(record.placement.needs, record.queue, record.type)) {
            auto entry = book.entries.find(need.resource);
            // One that somebody only complained about has no limit to count for.
            bool limited =
                entry != book.entries.end() && book.SettingsOf(entry->second).capacity.has_value();
            if (!limited) continue;
            auto holder = entry->second.holders.find(id);
            int has = holder == entry->second.holders.end() ? 0 : holder->second;
            if (has == need.units || book.IsBehind(id, need.resource)) continue;
            Fail(
                held,
                fmt::format(
                    "task {} needs {} of {}, {} counted", id.value(), need.units, need.resource, has
                )
            );
        }
    }
    findings.push_back(std::move(held));
    findings.push_back(std::move(most));
}

void Ops::JudgeWaits(std::vector<CheckFinding>& findings) {
    CheckFinding waits{.what = "each wait counts what it waits for (I9)"};
    for (const auto& [id, task] : data_.live) {
        const bool blocked = task.record.state == State::kBlocked;
        if (blocked && !task.wait) {
            Fail(waits, fmt::format("task {} waits for nothing that is known", id.value()));
            continue;
        }
        const int pending = blocked ? TallyOf(task.wait->members).pending : 0;
        if (task.record.waiting_for != pending) {
            Fail(
                waits,
                fmt::format(
                    "wait of task {} counts {} of {} pending",
                    id.value(),
                    task.record.waiting_for,
                    pending
                )
            );
        }
        if (!blocked) continue;
        for (const WaitMember& member : task.wait->members) {
            if (member.ended || data_.live.contains(member.task)) continue;
            Fail(
                waits,
                fmt::format(
                    "task {} waits for task {}, which is not there", id.value(), member.task.value()
                )
            );
        }
    }
    findings.push_back(std::move(waits));
}

void Ops::JudgeFlows(std::vector<CheckFinding>& findings) {
    CheckFinding flows{.what = "each flow counts its steps and signals"};
    for (const auto& [id, flow] : data_.flows) {
        std::int64_t bytes = 0;
        int last = 0;
        for (const FlowStep& step : flow.steps) {
            bytes += static_cast<std::int64_t>(step.result.size());
            last = std::max(last, step.no);
        }
        const auto waiting = std::ranges::count_if(flow.signals, [](const FlowSignal& signal) {
            return signal.step == 0;
        });
        const model::FlowRecord& record = flow.record;
        if (record.steps == last && record.bytes == bytes && record.waiting == waiting) continue;
        Fail(
            flows,
            fmt::format(
                "flow {} counts {} of {} steps, {} of {} bytes, {} of {} signals that wait",
                id.value(),
                record.steps,
                last,
                record.bytes,
                bytes,
                record.waiting,
                waiting
            )
        );
    }
    findings.push_back(std::move(flows));
}

}  // namespace stint::store::memory
