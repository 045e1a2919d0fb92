#include "engine/registry.h"

#include <gtest/gtest.h>

#include "engine/machine.h"
#include "engine/text.h"
#include "support/engine_rig.h"

namespace stint::engine {
namespace {

HandlerEntry Entry(std::string type) {
    return {.type = std::move(type), .defaults = {}, .handler = [](Context&, std::string_view) {
                return Done();
            }};
}

TEST(RegistryTest, FindsAndPublishesWhatWasAdded) {
    Registry registry;
    HandlerEntry entry = Entry("a.b");
    entry.defaults.queue = "q";
    registry.Add(std::move(entry));
    ASSERT_NE(registry.Find("a.b"), nullptr);
    EXPECT_EQ(registry.Find("a"), nullptr);
    ASSERT_EQ(registry.Defaults().size(), 1u);
    EXPECT_EQ(registry.Defaults().front().type, "a.b");
    EXPECT_EQ(registry.Defaults().front().queue, "q");
}

TEST(RegistryTest, RefusesBadEntriesWhereTheProgrammerSeesIt) {
    Registry registry;
    registry.Add(Entry("a"));
    EXPECT_THROW(registry.Add(Entry("a")), std::invalid_argument);
    EXPECT_THROW(registry.Add(Entry("")), std::invalid_argument);
    HandlerEntry bad = Entry("b");
    bad.defaults.priority = 999;
    EXPECT_THROW(registry.Add(std::move(bad)), std::invalid_argument);
    EXPECT_THROW(registry.Add({.type = "c", .defaults = {}, .handler = {}}), std::invalid_argument);
}

TEST(MachineTest, ImpossibleEventsAreOurBug) {
    Machine machine{base::Logger{}};
    EXPECT_FALSE(machine.TryFire(model::WorkerEvent::kClaimed));
    EXPECT_DEATH(machine.Fire(model::WorkerEvent::kClaimed), "claimed in startup");
    machine.Fire(model::WorkerEvent::kStopRequested);
    EXPECT_FALSE(machine.Fire(model::WorkerEvent::kClaimed)) << "stopping: ignored";
}

TEST(TextTest, CutsKeepWholeCharactersAndSayWhatIsMissing) {
    EXPECT_EQ(CutText("short", 100), "short");
    std::string cut = CutText(std::string(200, 'x'), 100);
    EXPECT_EQ(cut, std::string(60, 'x') + "… [140 bytes cut]");
    EXPECT_LE(cut.size(), 100u);
    std::string tail = CutToTail(std::string(200, 'x') + "end", 100);
    EXPECT_TRUE(tail.starts_with("[143 bytes cut] …"));
    EXPECT_TRUE(tail.ends_with("xend"));
}

}  // namespace
}  // namespace stint::engine
