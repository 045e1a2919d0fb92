// Period tables: history, attempts and audit lie in tables by (kind, retention, period) that are
// made when first needed and dropped as a whole.
#pragma once

#include <stint/time.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sqlite/connection.h"

namespace stint::store::lite {

enum class PeriodKind : std::uint8_t { kHistory, kAttempt, kAudit };
inline constexpr int kPeriodKinds = 3;
std::string_view PeriodKindName(PeriodKind kind);

struct Period {
    std::int64_t id = 0;
    PeriodKind kind = PeriodKind::kHistory;
    Duration keep{};
    Time starts_at{};
    Time ends_at{};
};

// How long a period is: at most 45 of one retention exist at once, and the usual ones outlive it by
// at most two days.
Duration PeriodLength(Duration keep);

// The periods as one connection sees them. Cheap to refresh: the schema's version tells.
class PeriodList {
public:
    // Within a transaction.
    void Refresh(sqlite::Connection& db);
    const std::vector<Period>& Of(PeriodKind kind) const {  // newest first
        return lists_[static_cast<std::size_t>(kind)];
    }

private:
    std::int64_t schema_version_ = -1;
    std::array<std::vector<Period>, kPeriodKinds> lists_;
};

// The writer's side: makes and drops.
class Periods {
public:
    explicit Periods(sqlite::Connection& db) : db_(db) {}

    // The period that `at` belongs to, made when it is not there yet.
    std::int64_t At(PeriodKind kind, Duration keep, Time at);
    const std::vector<Period>& Of(PeriodKind kind);

    // Drops one period whose time is over, if there is one; returns its table's name. One at a
    // time: everybody waits for the writer meanwhile.
    // `before_history` sees which one when it is of history.
    std::optional<std::string> DropExpired(
        Time now, const std::function<void(std::int64_t)>& before_history
    );

    // Makes the views over all periods anew.
    void MakeViews();
    void Forget();  // after a rollback

private:
    struct Current {
        Time starts_at;
        Time ends_at;
        std::int64_t id;
    };
    bool MayDrop(std::int64_t id, PeriodKind kind, Duration keep, Time now);
    bool CarryForward(std::int64_t id, PeriodKind kind, Duration keep, Time now);
    std::int64_t Create(PeriodKind kind, Duration keep, Time starts_at, Time ends_at);

    sqlite::Connection& db_;
    std::map<std::pair<PeriodKind, Duration>, Current> current_;
    PeriodList list_;
    bool fresh_ = false;
};

}  // namespace stint::store::lite
