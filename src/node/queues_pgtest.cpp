// Turns of queues, set through the public interface, on PostgreSQL.
#include "support/postgres_schema.h"
#include "support/queue_turns.h"

namespace stint {
namespace {

class TurnsOnPostgres : public ::testing::Test {
protected:
    static std::string Store(const testing::PostgresSchema& schema) {
        return testing::WithParameter(testing::TestPostgresUrl(), "stint_schema=" + schema.name());
    }
};

TEST_F(TurnsOnPostgres, AHeavyTenantDoesNotStarveALightOne) {
    SKIP_WITHOUT_POSTGRES();
    testing::PostgresSchema schema("turns");
    testing::ExpectTurnsByWeight(Store(schema));
}
TEST_F(TurnsOnPostgres, WithoutThemWhoCameFirstGoesFirst) {
    SKIP_WITHOUT_POSTGRES();
    testing::PostgresSchema schema("turns");
    testing::ExpectTurnsByPlace(Store(schema));
}
TEST_F(TurnsOnPostgres, AgeLiftsWhatWaitsBehindHigherPriorities) {
    SKIP_WITHOUT_POSTGRES();
    testing::PostgresSchema schema("turns");
    testing::ExpectAgingToLift(Store(schema));
}
TEST_F(TurnsOnPostgres, AreKeptCheckedAndRemoved) {
    SKIP_WITHOUT_POSTGRES();
    testing::PostgresSchema schema("turns");
    testing::ExpectTurnsToBeKept(Store(schema));
}

}  // namespace
}  // namespace stint
