// What may be said when a task is submitted, or made as a subtask.
#pragma once

#include <stint/ids.h>
#include <stint/placement.h>
#include <stint/task.h>
#include <stint/time.h>
#include <stint/transaction.h>
#include <stint/wait.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stint {

// What to do when a live task has the same unique key.
enum class OnDuplicate : std::uint8_t { kReturnExisting, kReplaceIfNotStarted, kError };

struct SubmitOptions {
    std::optional<std::string> queue = {};
    std::optional<int> priority = {};
    std::optional<Retry> retry = {};
    std::optional<Duration> timeout = {};
    std::optional<Duration> delay = {};
    std::optional<Time> run_at = {};
    std::optional<Time> start_by = {};  // dead if it has not started by then
    std::vector<std::string> tags = {};
    std::string idempotency_key =
        {};                       // same key and request: the same task; other request: conflict
    std::string unique_key = {};  // at most one live task per (type, key)
    OnDuplicate on_duplicate = OnDuplicate::kReturnExisting;
    std::string debounce_key = {};  // a burst becomes one task, debounce after the last submit …
    Duration debounce = Duration::zero();
    Duration debounce_max = Duration::zero();  // … but not later than this after the first
    std::string throttle_key = {};             // at most one task per key and period
    Duration throttle = Duration::zero();
    std::optional<TenantId> tenant = {};
    std::string actor = {};                               // who asks, for the audit log
    std::optional<After> after = {};                      // starts when these are over
    std::optional<std::vector<ResourceNeed>> needs = {};  // none = the type's
    std::optional<std::vector<std::string>> labels = {};  // likewise
    std::string order_key = {};  // tasks of one key run one at a time, in submit order
    FailedHead on_failed_head = FailedHead::kBlock;
    Transaction* in = nullptr;  // submit inside this transaction
};

}  // namespace stint
