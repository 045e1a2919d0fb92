// What the memory store remembers. Copyable: a copy is the savepoint of Write().
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "store/store.h"

namespace stint::store::memory {

struct Task {
    TaskRecord record;
    LeaseToken token;  // of the lease, or of the completer while BACKGROUND
    bool alone = false;
    int explicit_mask = 0;
    std::int64_t position = 0;
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
    std::vector<AuditEntry> audit;  // by seq
    std::int64_t next_id = 1;
    std::int64_t next_seq = 1;
    std::int64_t next_position = 1;
    std::int64_t next_node = 1;
};

}  // namespace stint::store::memory
