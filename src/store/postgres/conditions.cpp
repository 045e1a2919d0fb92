#include "store/postgres/conditions.h"

#include <fmt/format.h>

#include <array>

#include "base/check.h"
#include "stint_store_pg_conditions_embedded.h"
#include "store/postgres/sql.h"

namespace stint::store::pg {

namespace {

using model::Condition;

constexpr int kNeedNoQuestion = 3;  // eligible, not waiting, cancel requested

const std::array kConditions = {
    ConditionSql{Condition::kNotDue, Sieve::kDue, conditions::k_not_due},
    ConditionSql{Condition::kStartByPassed, Sieve::kTask, conditions::k_start_by_passed},
    ConditionSql{Condition::kQueuePaused, Sieve::kLane, conditions::k_queue_paused},
    ConditionSql{Condition::kQueueNotServed, Sieve::kLane, conditions::k_queue_not_served},
    ConditionSql{Condition::kTypeNotHandled, Sieve::kLane, conditions::k_type_not_handled},
    ConditionSql{
        Condition::kSuspectMustBeAlone, Sieve::kAlone, conditions::k_suspect_must_be_alone},
    ConditionSql{Condition::kBehindInOrder, Sieve::kOrder, conditions::k_behind_in_order},
    ConditionSql{Condition::kSessionNotLive, Sieve::kSession, conditions::k_session_not_live},
};
// And those that the claim's plan decides.
static_assert(
    kConditions.size() + kNeedNoQuestion == static_cast<std::size_t>(Condition::kLabelMissing)
);

std::string Passes(Sieve sieve) {
    std::string all;
    for (const ConditionSql& condition : kConditions) {
        if (condition.sieve != sieve) continue;
        all += fmt::format("{}NOT ({})", all.empty() ? "" : " AND ", condition.text);
    }
    return "(" + all + ")";
}

std::string Applying() {
    std::string all;
    for (const ConditionSql& condition : kConditions) {
        all += fmt::format(
            "{}CASE WHEN {} THEN {} END",
            all.empty() ? "" : ", ",
            condition.text,
            static_cast<int>(condition.condition)
        );
    }
    return "array_remove(ARRAY[" + all + "]::bigint[], NULL)";
}

}  // namespace

std::string_view SieveName(Sieve sieve) {
    switch (sieve) {
        case Sieve::kSession:
            return "session";
        case Sieve::kLane:
            return "lane";
        case Sieve::kAlone:
            return "alone";
        case Sieve::kDue:
            return "due";
        case Sieve::kTask:
            return "task";
        case Sieve::kOrder:
            return "order";
    }
    base::CheckFailed(__FILE__, __LINE__, "SieveName", "not a sieve");
}

std::span<const ConditionSql> Conditions() {
    return kConditions;
}

std::string WithConditions(std::string_view text) {
    std::string result(text);
    for (const ConditionSql& condition : kConditions) {
        std::string word = fmt::format("$passes {}$", SieveName(condition.sieve));
        ReplaceAll(result, word, Passes(condition.sieve));
    }
    ReplaceAll(result, "$applying$", Applying());
    return result;
}

}  // namespace stint::store::pg
