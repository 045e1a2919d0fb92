#include "store/postgres/conditions.h"

#include <gmock/gmock.h>

#include "store/postgres/sql.h"

namespace stint::store::pg {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

int Count(const std::string& text, const std::string& what) {
    int found = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
        ++found;
    return found;
}

struct Composed : ::testing::Test {
    const Sql sql{"s"};
    // How often the claim asks: once wherever it chooses sessions, lanes, suspects or tasks.
    int InTheClaim(const std::string& fragment, Stage stage) const {
        return Count(stage == Stage::kDue ? sql.promote.sql : sql.claim.sql, "NOT (" + fragment);
    }
    static int Expected(Stage stage) {
        switch (stage) {
            case Stage::kSession:
                return 1;
            case Stage::kLane:
                return 3;  // lanes to claim from, suspects waiting, the next one due
            case Stage::kAlone:
            case Stage::kDue:
                return 2;
            case Stage::kTask:
                return 3;  // counted, taken, taken instead of what others hold
        }
        return 0;
    }
};

TEST_F(Composed, EveryConditionIsInTheClaimAndInExplain) {
    for (const ConditionSql& condition : Conditions()) {
        std::string name(ConditionName(condition.condition));
        std::string fragment = ForSchema(condition.text, "s");
        EXPECT_EQ(InTheClaim(fragment, condition.stage), Expected(condition.stage)) << name;
        std::string number = std::to_string(static_cast<int>(condition.condition));
        EXPECT_EQ(Count(sql.explain.sql, "CASE WHEN " + fragment + " THEN " + number + " END"), 1)
            << name;
    }
}

TEST_F(Composed, TheIdleLookAsksTheSameOfSessionsLanesAndDueTimes) {
    for (const ConditionSql& condition : Conditions()) {
        if (condition.stage == Stage::kTask)
            continue;  // it says that a look is worth while, no more
        EXPECT_THAT(sql.claim_idle.sql, HasSubstr(ForSchema(condition.text, "s")));
    }
}

// A reason that is written out once more beside its fragment would be a second truth.
TEST_F(Composed, NoStatementHasItsOwnCopy) {
    for (const auto* statement : {&sql.claim, &sql.claim_idle, &sql.promote, &sql.explain}) {
        std::string rest = statement->sql;
        for (const ConditionSql& condition : Conditions()) {
            ReplaceAll(rest, ForSchema(condition.text, "s"), "");
        }
        for (const char* word :
             {"paused", "lease_until", "start_by >", "q.name =", "$3::text", "due >", "due <"})
            EXPECT_THAT(rest, Not(HasSubstr(word))) << statement->name;
    }
}

}  // namespace
}  // namespace stint::store::pg
