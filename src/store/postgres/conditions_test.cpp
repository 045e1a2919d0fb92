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
    int InTheClaim(const std::string& fragment, Sieve sieve) const {
        return Count(sieve == Sieve::kDue ? sql.promote.sql : sql.claim.sql, "NOT (" + fragment);
    }
    static int Expected(Sieve sieve) {
        switch (sieve) {
            case Sieve::kSession:
                return 1;
            case Sieve::kLane:
                // Lanes to claim from, those that need a plan, suspects waiting, the next one due.
                return 4;
            case Sieve::kAlone:
                return 3;
            case Sieve::kDue:
                return 2;
            case Sieve::kTask:
                return 3;  // counted, taken, taken instead of what others hold
            case Sieve::kOrder:
                return 0;  // such a task is not where the claim looks
        }
        return 0;
    }
};

TEST_F(Composed, EveryConditionIsInTheClaimAndInExplain) {
    for (const ConditionSql& condition : Conditions()) {
        std::string name(ConditionName(condition.condition));
        std::string fragment = ForSchema(condition.text, "s");
        EXPECT_EQ(InTheClaim(fragment, condition.sieve), Expected(condition.sieve)) << name;
        std::string number = std::to_string(static_cast<int>(condition.condition));
        EXPECT_EQ(Count(sql.explain.sql, "CASE WHEN " + fragment + " THEN " + number + " END"), 1)
            << name;
    }
}

TEST_F(Composed, TheIdleLookAsksTheSameOfSessionsLanesAndDueTimes) {
    for (const ConditionSql& condition : Conditions()) {
        if (condition.sieve == Sieve::kTask || condition.sieve == Sieve::kOrder)
            continue;  // it says that a look is worth while, no more
        EXPECT_THAT(sql.claim_idle.sql, HasSubstr(ForSchema(condition.text, "s")));
    }
}

// A reason that is written out once more beside its fragment would be a second truth.
TEST_F(Composed, NoStatementHasItsOwnCopy) {
    for (const auto* statement : {&sql.claim, &sql.claim_idle, &sql.promote, &sql.explain}) {
        // What the idle look asks by the way is not about claims.
        std::string rest = statement->sql.substr(0, statement->sql.find("-- By the way"));
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
