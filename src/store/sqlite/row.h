// A task as its row holds it, live or finished.
#pragma once

#include <stint/ids.h>

#include <array>
#include <optional>
#include <string>

#include "model/task.h"
#include "sqlite/statement.h"
#include "store/store.h"

namespace stint::store::lite {

// Where a claim finds a live task; the numbers are stored.
enum class Wait : std::uint8_t {
    kNowhere = 0,  // held, outside, blocked, finished
    kReady = 1,
    kLater = 2,          // its due time is in the future
    kReadySuspect = 3,   // ready, to be run alone
    kStartByPassed = 4,  // for housekeeping
    kLaterSuspect = 5,
    kBehind = 6,  // an earlier task of its order key is not over
};

enum Flag : int {
    kTypeUnknown = 1,
    kCancelRequested = 2,
    kSuspect = 4,
    kWarning = 8,
    kAlone = 16,         // the running attempt is
    kWaitedFor = 32,     // others wait for it
    kHasWait = 64,       // it waits or waited for others
    kResumes = 128,      // its next attempt comes after a wait …
    kExplicitShift = 8,  // four ExplicitBits
    kFailedWait = 4096,  // … that has failed
    kOrdered = 8192,     // it has an order key
};

struct TaskRow {
    TaskId id;
    std::int64_t lane = 0;
    State state = State::kOpen;
    Wait wait = Wait::kNowhere;
    int priority = limits::kPriorityDefault;
    std::int64_t position = 0;
    Time due_at{};
    std::optional<Time> start_by;
    int attempt = 0;
    int claim_no = 0;
    int generation = 1;
    int crashes = 0;
    std::optional<Time> crash_from;
    int flags = 0;
    Duration timeout{};
    Time created_at{};
    Time updated_at{};
    std::optional<Time> claimed_at;
    std::int64_t session = 0;  // stint_session.no; 0 = none
    std::optional<Time> deadline_at;
    NodeId node;
    TaskId parent;
    LeaseToken token;
    std::string retry;  // JSON; empty = the default policy
    std::string tags;   // JSON array; empty = none
    std::string unique_key;
    std::string idem_key;
    std::string debounce_key;
    std::string progress;  // JSON
    std::string error;     // JSON
    std::string reason;    // while running: why a cancel was requested
    std::string input;
    // Of finished ones.
    std::string output;
    std::optional<Time> finished_at;
    std::int64_t period = 0;  // where it lies; 0 = live

    bool Has(Flag flag) const { return (flags & flag) != 0; }
    void Set(Flag flag, bool on) { flags = on ? flags | flag : flags & ~flag; }
    Stage stage() const {
        if (!Has(kResumes)) return Stage::kStart;
        return Has(kFailedWait) ? Stage::kError : Stage::kResume;
    }
    void SetStage(Stage stage) {
        Set(kResumes, stage != Stage::kStart);
        Set(kFailedWait, stage == Stage::kError);
    }
};

// Columns in the order of the queries task_load and history_load.
void ReadTask(const sqlite::Rows& rows, TaskRow& row);
void ReadHistory(const sqlite::Rows& rows, std::int64_t period, TaskRow& row);
void InsertTask(sqlite::Statement& task_insert, const TaskRow& row);
void SaveTask(sqlite::Statement& task_save, const TaskRow& row);
// The next parameters after `index`.
void FillTask(sqlite::Statement& task_insert, int& index, const TaskRow& row);
void FillHistory(sqlite::Statement& history_insert, int& index, const TaskRow& row);

QueueSettings ReadQueue(const sqlite::Rows& rows);  // of queue_list
TypeRecord ReadType(const sqlite::Rows& rows);      // of type_list

// ---- values as they are stored ----

inline std::int64_t Micros(Time time) {
    return time.time_since_epoch().count();
}
inline Time FromMicros(std::int64_t micros) {
    return Time(std::chrono::microseconds(micros));
}
inline std::optional<std::int64_t> Micros(std::optional<Time> time) {
    return time ? std::optional(Micros(*time)) : std::nullopt;
}
inline std::optional<Time> OptionalTime(const sqlite::Rows& rows, int column) {
    return rows.IsNull(column) ? std::nullopt : std::optional(FromMicros(rows.Int(column)));
}
// Absent texts are stored as NULL.
inline std::optional<std::string_view> OrNull(std::string_view text) {
    return text.empty() ? std::nullopt : std::optional(text);
}

using Bytes16 = std::array<unsigned char, 16>;
template <class RandomIdType>
Bytes16 ToBytes(const RandomIdType& id) {
    Bytes16 bytes;
    for (int i = 0; i < 8; ++i) {
        bytes[i] = static_cast<unsigned char>(id.high() >> (56 - 8 * i));
        bytes[8 + i] = static_cast<unsigned char>(id.low() >> (56 - 8 * i));
    }
    return bytes;
}
template <class RandomIdType>
RandomIdType FromBytes(sqlite::Blob bytes) {
    if (bytes.size() != 16) return {};
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    for (int i = 0; i < 8; ++i) {
        high = high << 8 | bytes[i];
        low = low << 8 | bytes[8 + i];
    }
    return RandomIdType(high, low);
}

// Empty text = the default policy. Parsed ones are remembered per thread: few are distinct.
std::string RetryText(const RetryPolicy& policy);
const RetryPolicy& RetryOf(const std::string& text);  // or what stands in for one that is not
bool IsRetry(const std::string& text);
std::string TagsText(const std::vector<std::string>& tags);
std::vector<std::string> TagsOf(std::string_view text);
std::string ErrorText(const TaskError& error);
std::optional<TaskError> ErrorOf(std::string_view text);
std::string ProgressText(const Progress& progress);
std::optional<Progress> ProgressOf(std::string_view text);

}  // namespace stint::store::lite
