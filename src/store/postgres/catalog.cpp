#include "store/postgres/catalog.h"

#include <algorithm>

#include "base/check.h"
#include "store/postgres/records.h"
#include "store/unreadable_policy.h"

namespace stint::store::pg {

namespace {

constexpr auto kPeriodsKept = std::chrono::seconds{60};

}  // namespace

int Catalog::LaneId(const Lane& lane) {
    {
        std::lock_guard guard(mutex_);
        if (auto known = lane_ids_.find(lane); known != lane_ids_.end()) return known->second;
    }
    Params names;
    names.Text(lane.queue);
    Params all;
    all.Text(lane.queue).Text(lane.type).Number(lane.tenant).Int4(lane.priority).Bool(lane.suspect);
    all.Text(lane.placement);
    int id = db_.RunAside([&](Transaction& transaction) {
        transaction.Defer(db_.sql.queue_make, names);
        return static_cast<int>(transaction.Query(db_.sql.lane_make, all).Int(0, 0));
    });
    Learn(id, lane);
    return id;
}

void Catalog::Learn(int id, const Lane& lane) {
    std::lock_guard guard(mutex_);
    if (!lanes_.emplace(id, lane).second) return;
    lane_ids_[lane] = id;
}

void Catalog::LearnPolicy(int id, std::string_view retry) {
    {
        std::lock_guard guard(mutex_);
        if (policies_.contains(id)) return;
    }
    auto policy = RetryFromJson(retry);
    if (!policy) {
        log_.Error(
            "a stored retry policy cannot be read: its tasks are not recovered here, and their "
            "failures are final; run the program that wrote it, or mend the policy",
            {{"policy", std::to_string(id)}, {"why", policy.error().message}}
        );
    }
    std::lock_guard guard(mutex_);
    if (!policy) unreadable_.insert(id);
    policies_[id] = policy ? *policy : StandIn();
}

bool Catalog::CanRead(int policy) {
    PolicyOf(policy);
    std::lock_guard guard(mutex_);
    return !unreadable_.contains(policy);
}

std::vector<std::int64_t> Catalog::Unreadable() {
    std::lock_guard guard(mutex_);
    return {unreadable_.begin(), unreadable_.end()};
}

void Catalog::ForgetUnreadable() {
    std::lock_guard guard(mutex_);
    for (int policy : unreadable_) policies_.erase(policy);
    unreadable_.clear();
}

Lane Catalog::LaneOf(int id) {
    {
        std::lock_guard guard(mutex_);
        if (auto known = lanes_.find(id); known != lanes_.end()) return known->second;
    }
    Rows rows = db_.ReadAside(db_.sql.lane_by_id, Params().Int4(id));
    CHECK_WHY(rows.size() == 1, "a task names a lane that does not exist");
    Lane lane{
        rows.Text(0, 0),
        rows.Text(0, 1),
        TenantId(rows.Int(0, 2)),
        static_cast<int>(rows.Int(0, 3)),
        rows.Bool(0, 4),
        rows.Text(0, 5)};
    Learn(id, lane);
    return lane;
}

int Catalog::PolicyId(const RetryPolicy& policy) {
    std::string json = RetryToJson(policy);
    {
        std::lock_guard guard(mutex_);
        if (auto known = policy_ids_.find(json); known != policy_ids_.end()) return known->second;
    }
    int id = db_.RunAside([&](Transaction& transaction) {
        return static_cast<int>(
            transaction.Query(db_.sql.policy_make, Params().Text(json)).Int(0, 0)
        );
    });
    std::lock_guard guard(mutex_);
    policy_ids_[json] = id;
    policies_[id] = policy;
    return id;
}

RetryPolicy Catalog::PolicyOf(int id) {
    {
        std::lock_guard guard(mutex_);
        if (auto known = policies_.find(id); known != policies_.end()) return known->second;
    }
    Rows rows = db_.ReadAside(db_.sql.policy_by_id, Params().Int4(id));
    CHECK_WHY(rows.size() == 1, "a task names a retry policy that does not exist");
    LearnPolicy(id, rows.View(0, 0));
    return PolicyOf(id);
}

std::vector<std::int64_t> Catalog::KnownPolicies(std::size_t most) {
    std::vector<std::int64_t> known;
    std::lock_guard guard(mutex_);
    for (const auto& [id, policy] : policies_) {
        if (known.size() == most) break;
        known.push_back(id);
    }
    return known;
}

Catalog::Type Catalog::TypeNamed(const std::string& name) {
    std::lock_guard guard(mutex_);
    auto known = types_.find(name);
    return known != types_.end() ? known->second : Type{};
}

void Catalog::ReloadTypes() {
    Rows rows = db_.ReadAside(db_.sql.types);
    std::lock_guard guard(mutex_);
    types_.clear();
    for (int i = 0; i < rows.size(); ++i) {
        TypeRecord record = ReadType(rows, i);
        types_[record.defaults.type] = {record.defaults, record.revision};
    }
}

int Catalog::PeriodOf(TaskId id) {
    bool stale = false;
    {
        std::lock_guard guard(mutex_);
        stale = periods_.empty() || base::SystemClock().Now() - periods_read_ > kPeriodsKept;
    }
    if (stale) ReloadPeriods();
    std::lock_guard guard(mutex_);
    auto after = std::upper_bound(
        periods_.begin(),
        periods_.end(),
        id.value(),
        [](std::int64_t value, const auto& period) { return value < period.first; }
    );
    return after == periods_.begin() ? 1 : std::prev(after)->second;
}

Catalog::Stretch Catalog::StretchBelow(TaskId id, int periods) {
    Stretch stretch;
    stretch.newest = stretch.oldest = PeriodOf(id);
    std::lock_guard guard(mutex_);
    for (const auto& [first_id, number] : periods_) {
        if (number <= stretch.newest - periods || number > stretch.newest) continue;
        stretch.oldest = number;
        stretch.first_id = number == periods_.front().second ? 0 : first_id;
        return stretch;
    }
    return stretch;
}

void Catalog::ReloadPeriods() {
    Rows rows = db_.ReadAside(db_.sql.periods);
    std::lock_guard guard(mutex_);
    periods_.clear();
    for (int i = 0; i < rows.size(); ++i) {
        periods_.emplace_back(rows.Int(i, 0), static_cast<int>(rows.Int(i, 1)));
    }
    periods_read_ = base::SystemClock().Now();
}

}  // namespace stint::store::pg
