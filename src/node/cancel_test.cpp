// What a cancel tells the program that asked for it.
#include <gmock/gmock.h>
#include <stint/stint.h>
#include <unistd.h>

#include <filesystem>

#include "support/engine_rig.h"

namespace stint {
namespace {

using namespace std::chrono_literals;
using engine::Eventually;
namespace fs = std::filesystem;

constexpr Task<int, int> kParent{"parent"};
constexpr Task<int, int> kChild{"child"};  // that nobody handles

class CancelAnswer : public ::testing::TestWithParam<std::string> {
protected:
    CancelAnswer() {
        fs::remove_all(place_);
        fs::create_directories(place_);
    }
    ~CancelAnswer() override { fs::remove_all(place_); }

    Options Quick() const {
        Options options;
        options.store = GetParam() == "sqlite" ? "sqlite:" + (place_ / "t.db").string() : "memory:";
        options.poll = {.min = 1ms, .max = 10ms};
        return options;
    }
    // One that waits for so many below it.
    static stint::Run<int> Waiting(Engine& engine, int children) {
        auto run = engine.Submit(kParent, children).value();
        EXPECT_TRUE(Eventually([&] { return engine.Get(run.id()).value().state == "blocked"; }));
        return run;
    }

private:
    const fs::path place_ =
        fs::temp_directory_path() / ("stint-cancel-" + std::to_string(getpid()));
};
INSTANTIATE_TEST_SUITE_P(
    Store,
    CancelAnswer,
    ::testing::Values("memory", "sqlite"),
    [](const auto& given) { return given.param; }
);

TEST_P(CancelAnswer, CountsWhatWasStoppedBelow) {
    Engine engine(Quick());
    engine.Handle(kParent, [](Context& context, int children) -> Outcome<int> {
        for (int i = 0; i < children; ++i) context.Subtask(kChild, i);
        return Blocked{};
    });
    engine.Start();
    auto run = Waiting(engine, 3);
    auto answer = run.Cancel("no longer needed");
    ASSERT_TRUE(answer);
    EXPECT_EQ(*answer, (Cancelled{.stopped = true, .descendants = 3}));
    EXPECT_TRUE(*answer) << "true where it is asked for one";
    EXPECT_EQ(run.Wait().error().message, "no longer needed");
    Cancelled again = run.Cancel("again").value();
    EXPECT_FALSE(again);
    EXPECT_EQ(again.descendants, 0);
    auto by_id = engine.Cancel(Waiting(engine, 2).id(), "by its id");
    EXPECT_EQ(by_id.value(), (Cancelled{.stopped = true, .descendants = 2}));
}

TEST_P(CancelAnswer, OfATaskWithoutOthersAndOfNone) {
    Engine engine(Quick());
    auto run = engine.Submit(kChild, 1).value();
    EXPECT_EQ(engine.Cancel(run.id()).value(), (Cancelled{.stopped = true, .descendants = 0}));
    EXPECT_EQ(engine.Get(run.id()).value().state, "cancelled");
    EXPECT_FALSE(engine.Cancel(run.id()).value());
    EXPECT_EQ(engine.Cancel(TaskId(999'999)).error().code, Code::kNotFound);
}

}  // namespace
}  // namespace stint
