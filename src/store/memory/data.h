// What the memory store remembers. Copyable: a copy is the savepoint of Write().
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "store/memory/event_data.h"
#include "store/memory/flow_data.h"
#include "store/memory/result_data.h"
#include "store/resource_book.h"
#include "store/schedules.h"
#include "store/store.h"

namespace stint::store::memory {

// The last wait of a task.
struct WaitState {
    WaitOn policy;
    std::vector<WaitMember> members;
    bool started = false;  // it waited in the middle of its work
    WaitTally tally;
    // Where in `members` a task is, which may be several times, by keys.
    std::multimap<TaskId, std::size_t> places;

    void End(std::size_t place, State state) {
        WaitMember& member = members[place];
        if (member.ended) return;
        member.ended = state;
        --tally.pending;
        if (HasFailed(member)) ++tally.failed;
    }
};

struct Task {
    TaskRecord record;
    std::optional<WaitState> wait;
    LeaseToken token;  // of the lease, or of the completer while BACKGROUND
    bool alone = false;
    int explicit_mask = 0;
    std::int64_t position = 0;
    std::int64_t order_no = 0;       // its turn among those of its order key
    std::optional<Time> deadline;    // of the running attempt, by its own timeout
    std::optional<Time> crash_from;  // start of the crash window
    std::string cancel_reason;
    std::string debounce_key;
    Duration keep{};    // retention, decided when it finishes
    bool lost = false;  // only under a planted bug: no claim finds it
    std::vector<AttemptRecord> attempts;
    std::map<LeaseToken, State> settled;  // which holder's outcome was accepted, and what it led to
};

struct Session {
    SessionRecord record;
    bool over = false;  // closed, or found dead
};

using Key = std::pair<TenantId, std::string>;
using TypedKey = std::tuple<TenantId, std::string, std::string>;  // tenant, type, key

struct IdempotencyKey {
    TaskId task;
    std::string hash;
    Time expires_at{};
};
struct ThrottleKey {
    TaskId task;
    Time until{};
};

using RunKey = std::tuple<ScheduleId, Time, std::string>;  // the instant, the entity
struct Run {
    ScheduleRun run;
    Time expires_at{};
};

struct Data {
    std::map<TaskId, Task> live;
    std::map<TaskId, Task> finished;
    std::map<SessionId, Session> sessions;
    std::map<std::string, NodeRecord> nodes;  // by hostname
    std::map<std::string, TypeRecord> types;
    std::map<std::string, QueueSettings> queues;
    std::map<Key, IdempotencyKey> idempotency;
    std::map<TypedKey, TaskId> unique;
    std::map<TypedKey, TaskId> debounce;
    std::map<TypedKey, ThrottleKey> throttle;
    std::map<TaskId, std::set<TaskId>> waiters;  // who waits for a task
    std::vector<AuditEntry> audit;               // by seq
    std::map<ScheduleId, Schedule> schedules;
    std::map<RunKey, Run> runs;
    std::map<Key, Calendar> calendars;
    std::map<std::pair<ScheduleId, std::string>, Visit> visits;
    std::int64_t next_schedule = 1;
    EventData events;
    std::map<TaskId, FlowData> flows;
    ResourceBook resources;
    std::map<Key, std::map<std::int64_t, TaskId>> ordered;  // by order key: whose turn comes when
    std::int64_t next_order = 1;
    ResultData results;
    std::int64_t next_id = 1;
    std::int64_t next_seq = 1;
    std::int64_t next_position = 1;
    std::int64_t next_node = 1;
};

}  // namespace stint::store::memory
