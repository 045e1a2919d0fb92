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
    ConditionSql{Condition::kNotDue, Stage::kDue, conditions::k_not_due},
    ConditionSql{Condition::kStartByPassed, Stage::kTask, conditions::k_start_by_passed},
    ConditionSql{Condition::kQueuePaused, Stage::kLane, conditions::k_queue_paused},
    ConditionSql{Condition::kQueueNotServed, Stage::kLane, conditions::k_queue_not_served},
    ConditionSql{Condition::kTypeNotHandled, Stage::kLane, conditions::k_type_not_handled},
    ConditionSql{
        Condition::kSuspectMustBeAlone, Stage::kAlone, conditions::k_suspect_must_be_alone},
    ConditionSql{Condition::kSessionNotLive, Stage::kSession, conditions::k_session_not_live},
};
static_assert(kConditions.size() + kNeedNoQuestion == model::kConditionCount);

std::string Passes(Stage stage) {
    std::string all;
    for (const ConditionSql& condition : kConditions) {
        if (condition.stage != stage) continue;
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

std::string_view StageName(Stage stage) {
    switch (stage) {
        case Stage::kSession:
            return "session";
        case Stage::kLane:
            return "lane";
        case Stage::kAlone:
            return "alone";
        case Stage::kDue:
            return "due";
        case Stage::kTask:
            return "task";
    }
    base::CheckFailed(__FILE__, __LINE__, "StageName", "not a stage");
}

std::span<const ConditionSql> Conditions() {
    return kConditions;
}

std::string WithConditions(std::string_view text) {
    std::string result(text);
    for (const ConditionSql& condition : kConditions) {
        std::string word = fmt::format("$passes {}$", StageName(condition.stage));
        ReplaceAll(result, word, Passes(condition.stage));
    }
    ReplaceAll(result, "$applying$", Applying());
    return result;
}

}  // namespace stint::store::pg
