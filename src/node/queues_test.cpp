// Turns of queues, set through the public interface.
#include "support/queue_turns.h"

namespace stint {
namespace {

class Turns : public ::testing::TestWithParam<const char*> {
protected:
    std::string Store() const {
        std::string kind = GetParam();
        return kind == "memory" ? "memory:" : "sqlite:" + directory_.path() + "/t.db";
    }
    engine::TemporaryDirectory directory_;
};
INSTANTIATE_TEST_SUITE_P(, Turns, ::testing::Values("memory", "sqlite"), [](const auto& info) {
    return std::string(info.param);
});

TEST_P(Turns, AHeavyTenantDoesNotStarveALightOne) {
    testing::ExpectTurnsByWeight(Store());
}
TEST_P(Turns, WithoutThemWhoCameFirstGoesFirst) {
    testing::ExpectTurnsByPlace(Store());
}
TEST_P(Turns, AgeLiftsWhatWaitsBehindHigherPriorities) {
    testing::ExpectAgingToLift(Store());
}
TEST_P(Turns, AreKeptCheckedAndRemoved) {
    testing::ExpectTurnsToBeKept(Store());
}

}  // namespace
}  // namespace stint
