#include "postgres/sqlstate.h"

#include <gtest/gtest.h>

namespace stint::postgres {
namespace {

TEST(SqlState, LostRacesAreRetried) {
    EXPECT_EQ(Classify("40001"), Fault::kRetry);
    EXPECT_EQ(Classify("40P01"), Fault::kRetry);
}

TEST(SqlState, DeadConnectionsAreDropped) {
    for (const char* state :
         {"25006",
          "57P01",
          "57P02",
          "57P03",
          "57P04",
          "57P05",
          "08000",
          "08003",
          "08006",
          "08P01"}) {
        EXPECT_EQ(Classify(state), Fault::kConnection) << state;
    }
}

TEST(SqlState, AFullOrFailingServerIsLeftAloneForAWhile) {
    // Connections, disk, memory, limits; then the server's own input and output.
    for (const char* state : {"53300", "53100", "53200", "53400", "53000", "58030", "58000"}) {
        EXPECT_EQ(Classify(state), Fault::kBackOff) << state;
    }
}
TEST(SqlState, AValueThatCannotBeHeldIsNamed) {
    for (const char* state : {"22P02", "22001", "22003", "22P05", "23502", "23503"}) {
        EXPECT_EQ(Classify(state), Fault::kData) << state;
    }
    EXPECT_EQ(FaultName(Fault::kData), "data");
}
TEST(SqlState, AHeldLockIsSkipped) {
    EXPECT_EQ(Classify("55P03"), Fault::kSkip);
}
TEST(SqlState, ACancelledStatementTimedOut) {
    EXPECT_EQ(Classify("57014"), Fault::kTimeout);
}
TEST(SqlState, ATakenKeyIsNamed) {
    EXPECT_EQ(Classify("23505"), Fault::kUnique);
}

TEST(SqlState, TheRestIsForPeople) {
    for (const char* state : {"42601", "42501", "", "XX000"}) {
        EXPECT_EQ(Classify(state), Fault::kOther) << state;
    }
    EXPECT_EQ(FaultName(Fault::kOther), "other");
    EXPECT_EQ(FaultName(Fault::kRetry), "retry");
}

}  // namespace
}  // namespace stint::postgres
