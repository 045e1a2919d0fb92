// What a handler may answer is a closed set: whoever adds to it meets this test, and with it every
// place that must know of it (the store's settlements, the batch handlers, the isolated children).
#include <gtest/gtest.h>
#include <stint/outcome.h>

#include <string>
#include <type_traits>
#include <variant>

namespace stint {
namespace {

TEST(Outcomes, AreAClosedSet) {
    using Expected =
        std::variant<std::string, Background, Snooze, Failed, Blocked, ResourceUnavailable>;
    EXPECT_TRUE((std::is_same_v<Outcome<std::string>, Expected>));
    EXPECT_TRUE((std::is_same_v<std::variant_alternative_t<0, Outcome<void>>, std::monostate>));
}

}  // namespace
}  // namespace stint
