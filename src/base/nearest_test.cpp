#include "base/nearest.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stint::base {
namespace {

TEST(Nearest, CountsEditsAndSwaps) {
    EXPECT_EQ(EditDistance("task", "task"), 0);
    EXPECT_EQ(EditDistance("tsak", "task"), 1);  // one swap
    EXPECT_EQ(EditDistance("Task", "task"), 0);
    EXPECT_EQ(EditDistance("", "abc"), 3);
    EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
    EXPECT_EQ(EditDistance(std::string(500, 'a'), "a"), 128);
}

TEST(Nearest, NamesWhatWasMeantAndNothingElse) {
    std::vector<std::string> names = {"task", "queue", "worker", "store", "submit", "migrate"};
    EXPECT_EQ(Nearest("tsk", names), "task");
    EXPECT_EQ(Nearest("wroker", names), "worker");
    EXPECT_EQ(Nearest("mig", names), "migrate");
    EXPECT_EQ(Nearest("bananas", names), "");
    EXPECT_EQ(Nearest("x", names), "");
    EXPECT_EQ(Nearest("x", std::vector<std::string>{}), "");
}

}  // namespace
}  // namespace stint::base
