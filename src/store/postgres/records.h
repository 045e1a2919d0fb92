// Rows into the model's words and back.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "postgres/rows.h"
#include "store/postgres/db.h"

namespace stint::store::pg {

class Catalog;

// What a task carries with it from table to table, as bits (see migrations/001_first.sql).
enum Flag : int {
    kHasPast = 1,
    kHasKey = 2,
    kCancelAsked = 4,
    kHasTimeout = 8,
    kHasStartBy = 16,
    kTypeUnknown = 32,
    kAlone = 64,
    kWaitedFor = 128,
    kResumes = 256,
    kFailedWait = 512,
    kHasWait = 1024,
    kHoldsSlots = 2048,  // of leases only
    kOrdered = 4096,
    kBehind = 8192,  // of leases only: others of its lease hold what it needs
};

Stage StageOf(int flags);
int WithStage(int flags, Stage stage);

std::string WriteError(const std::optional<TaskError>& error);  // empty = none
std::optional<TaskError> ReadError(std::string_view json);
std::optional<Progress> ReadProgress(std::string_view json);
RetryPolicy ReadPolicy(std::string_view json);
TypeRecord ReadType(const Rows& rows, int row);

// The token's two halves as they are stored.
std::int64_t KeyOf(LeaseToken token);
std::int64_t SecretOf(LeaseToken token);
LeaseToken TokenOf(std::int64_t key, std::int64_t secret);

// A row of record_live_ or record_history_.
TaskRecord ReadTask(const Rows& rows, int row, Catalog& catalog);
AuditEntry ReadAudit(const Rows& rows, int row);
AttemptRecord ReadAttempt(const Rows& rows, int row);

}  // namespace stint::store::pg
