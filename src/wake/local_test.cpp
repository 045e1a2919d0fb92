#include "wake/local.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace stint::wake {
namespace {

TEST(LocalWakeTest, DeliversToAllUntilTheyUnsubscribe) {
    LocalWake wake;
    std::vector<std::string> first, second;
    int one = wake.Subscribe([&](const Hint& hint) { first.push_back(hint.queue); });
    int two = wake.Subscribe([&](const Hint& hint) { second.push_back(hint.queue); });
    Hint hint{Hint::Kind::kTaskAvailable, "a", {}};
    wake.Signal({&hint, 1});
    wake.Unsubscribe(one);
    wake.Signal({&hint, 1});
    wake.Unsubscribe(two);
    wake.Unsubscribe(two);
    wake.Signal({&hint, 1});
    EXPECT_EQ(first.size(), 1u);
    EXPECT_EQ(second.size(), 2u);
}

TEST(LocalWakeTest, NobodyHearsAfterUnsubscribeReturned) {
    LocalWake wake;
    Hint hint{Hint::Kind::kTaskFinished, {}, TaskId(1)};
    std::jthread signaller([&](std::stop_token stop) {
        while (!stop.stop_requested()) wake.Signal({&hint, 1});
    });
    for (int i = 0; i < 1000; ++i) {
        auto heard = std::make_unique<int>(0);
        int number = wake.Subscribe([raw = heard.get()](const Hint&) { ++*raw; });
        wake.Unsubscribe(number);
        heard.reset();
    }
}

}  // namespace
}  // namespace stint::wake
