// Batch handlers as a program sees them: typed inputs, an outcome each.
#include <gmock/gmock.h>
#include <stint/stint.h>
#include <stint/testing.h>

#include <mutex>

namespace stint {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TestEngine;

constexpr Task<int, int> kDouble{"double", {.retry = Retry::Times(1)}};
constexpr Task<void, void> kTick{"tick", {.retry = Retry::Times(1)}};

// Submitted before the worker starts: the first claim finds them together.
struct Rig {
    Engine engine{{.store = "memory:", .slots = 8, .poll = {.min = 1ms, .max = 10ms}}};
    std::mutex mutex;
    std::vector<std::size_t> sizes;

    void Note(std::size_t size) {
        std::lock_guard guard(mutex);
        sizes.push_back(size);
    }
};

TEST(BatchHandler, TakesTypedInputsAndReturnsAnOutcomeForEach) {
    Rig rig;
    rig.engine.HandleBatch(kDouble, 8, [&](std::span<const BatchItem<int>> items) {
        rig.Note(items.size());
        std::vector<Outcome<int>> ends;
        for (const BatchItem<int>& item : items) {
            if (item.input < 0) {
                ends.push_back(Failed{.message = "negative", .retryable = false});
            } else {
                ends.push_back(2 * item.input);
            }
        }
        return ends;
    });
    std::vector<stint::Run<int>> runs;
    for (int input : {1, -2, 3}) runs.push_back(rig.engine.Submit(kDouble, input).value());
    auto unreadable = rig.engine.SubmitJson("double", R"("three")").value();
    rig.engine.Start();
    EXPECT_EQ(runs[0].Wait().value(), 2);
    EXPECT_EQ(runs[1].Wait().error().message, "negative");
    EXPECT_EQ(runs[2].Wait().value(), 6);
    EXPECT_THAT(unreadable.Wait().error().message, HasSubstr("does not fit its type"));
    rig.engine.Stop();
    EXPECT_THAT(rig.sizes, ElementsAre(3)) << "the unreadable one fails by itself";
}

TEST(BatchHandler, MustReturnOneOutcomeForEach) {
    Rig rig;
    rig.engine.HandleBatch(kTick, 2, [&](std::span<const BatchItem<void>>) {
        return std::vector<Outcome<void>>(3);
    });
    auto run = rig.engine.Submit(kTick).value();
    rig.engine.Start();
    EXPECT_THAT(run.Wait().error().message, HasSubstr("was given 1 tasks and returned 3 outcomes"));
}

TEST(BatchHandler, ItemsOfEachAreWrittenAndJudged) {
    Rig rig;
    rig.engine.HandleBatch(kDouble, 8, [&](std::span<const BatchItem<int>> items) {
        rig.Note(items.size());
        std::vector<Outcome<int>> ends;
        for (const BatchItem<int>& item : items) {
            item.context->Item({.key = "bad", .error = "refused"});
            if (item.input > 0) item.context->Item({.key = "good"});
            ends.push_back(item.input);
        }
        return ends;
    });
    auto some = rig.engine.Submit(kDouble, 1).value();
    auto all = rig.engine.Submit(kDouble, 0).value();
    rig.engine.Start();
    EXPECT_EQ(some.Wait().value(), 1);
    EXPECT_EQ(all.Wait().error().message, "its only item is in error");
    rig.engine.Stop();
    EXPECT_THAT(rig.sizes, ElementsAre(2));
    EXPECT_TRUE(rig.engine.Get(some.id()).value().warning);
    EXPECT_EQ(rig.engine.CountItems(some.id()).value(), (ItemCounts{2, 1}));
    EXPECT_EQ(rig.engine.CountItems(all.id()).value(), (ItemCounts{1, 1}));
}

TEST(BatchHandler, WorksInTheTestEngineOneByOne) {
    TestEngine engine;
    engine.HandleBatch(kTick, 5, [](std::span<const BatchItem<void>> items) {
        EXPECT_EQ(items.size(), 1u);
        EXPECT_EQ(items[0].context->type(), "tick");
        return std::vector<Outcome<void>>(items.size());
    });
    auto run = engine.Submit(kTick).value();
    engine.RunUntilIdle();
    EXPECT_TRUE(run.Wait());
}

}  // namespace
}  // namespace stint
