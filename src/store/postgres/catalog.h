// What changes so rarely that a process may remember it: lanes, policies, types, periods.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "store/postgres/db.h"

namespace stint::store::pg {

// One distinct head of a line; never changes once it has a number.
struct Lane {
    std::string queue;
    std::string type;
    TenantId tenant = kDefaultTenant;
    int priority = 0;
    bool suspect = false;
    std::string placement = {};  // needs and labels as text; empty for none
    friend auto operator<=>(const Lane&, const Lane&) = default;
};

// Thread-safe. Misses are looked up, and made, on a connection kept aside: never inside a caller's
// transaction, which may stay open for long.
class Catalog {
public:
    Catalog(Db& db, base::Logger log) : db_(db), log_(std::move(log)) {}

    int LaneId(const Lane& lane);
    Lane LaneOf(int id);
    // What an answer told: it need not be looked up.
    void Learn(int id, const Lane& lane);
    void LearnPolicy(int id, std::string_view retry);
    int PolicyId(const RetryPolicy& policy);
    RetryPolicy PolicyOf(int id);  // or what stands in for one that cannot be read
    std::vector<std::int64_t> KnownPolicies(std::size_t most);
    bool CanRead(int policy);
    std::vector<std::int64_t> Unreadable();  // policies met so far
    void ForgetUnreadable();                 // somebody may have mended them

    // Revision 0: nobody registered it, as far as known here. The statements that depend on it
    // compare the revision and ask for Reload when it is not the current one.
    struct Type {
        std::optional<TypeDefaults> defaults;
        int revision = 0;
    };
    Type TypeNamed(const std::string& name);
    void ReloadTypes();

    // May lag behind by one period; readers look into the one before as well.
    int PeriodOf(TaskId id);
    void ReloadPeriods();
    // A few periods down from the one of `id`: their numbers and the first id among them. first_id
    // 0: there are none below.
    struct Stretch {
        int newest = 1, oldest = 1;
        std::int64_t first_id = 0;
    };
    Stretch StretchBelow(TaskId id, int periods);

private:
    Db& db_;
    const base::Logger log_;
    std::mutex mutex_;  // guards all below
    std::map<Lane, int> lane_ids_;
    std::unordered_map<int, Lane> lanes_;
    std::unordered_map<std::string, int> policy_ids_;
    std::unordered_map<int, RetryPolicy> policies_;
    std::set<int> unreadable_;
    std::unordered_map<std::string, Type> types_;
    std::vector<std::pair<std::int64_t, int>> periods_;  // first id, number; by first id
    base::Instant periods_read_{};
};

}  // namespace stint::store::pg
