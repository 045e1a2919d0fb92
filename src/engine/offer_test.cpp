// What a worker asks of a claim: its labels, what it withholds, the room that is left.
#include <gmock/gmock.h>

#include "store/resources.h"
#include "support/engine_rig.h"

namespace stint::engine {
namespace {

using model::Needs;
using model::State;

TEST(Offer, AWorkerCarriesItsLabels) {
    Rig rig;
    rig.options.labels = {"eu", "gpu"};
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Open();
    TaskId here = rig.Submit("t", {.labels = std::vector<std::string>{"gpu"}});
    TaskId elsewhere = rig.Submit("t", {.labels = std::vector<std::string>{"us"}});
    rig.Drive();
    EXPECT_EQ(rig.StateOf(here), State::kComplete);
    EXPECT_EQ(rig.StateOf(elsewhere), State::kOpen);
}

TEST(Offer, WhatIsWithheldIsLeftAloneUntilItIsOfferedAgain) {
    Rig rig;
    std::vector<std::string> withheld = {"ollama"};
    rig.options.withheld = [&] { return withheld; };
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Open();
    TaskId needs = rig.Submit("t", {.needs = Needs{{"ollama", 1}}});
    TaskId free = rig.Submit("t");
    rig.Drive();
    EXPECT_EQ(rig.StateOf(needs), State::kOpen);
    EXPECT_EQ(rig.StateOf(free), State::kComplete);
    withheld.clear();
    rig.worker->Look();
    rig.Drive();
    EXPECT_EQ(rig.StateOf(needs), State::kComplete);
}

TEST(Offer, OfAFullQueueOrTypeNothingMoreIsClaimed) {
    Rig rig;
    rig.options.slots = 8;
    rig.options.at_once_of_queue = {{"slow", 2}};
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    HandlerEntry one{.type = "one", .defaults = {}, .handler = [](Context&, std::string_view) {
                         return Done();
                     }};
    one.at_once_per_worker = 1;
    rig.registry.Add(std::move(one));
    rig.Open();
    for (int i = 0; i < 4; ++i) {
        rig.Submit("t", {.queue = "slow"});
        rig.Submit("one");
    }
    rig.worker->ClaimOnce();
    EXPECT_EQ(rig.worker->running(), 3) << "two of the queue and one of the type, of eight slots";
    rig.worker->ClaimOnce();
    EXPECT_EQ(rig.worker->running(), 3);
    EXPECT_EQ(rig.Drive(), 8) << "in the end all of them";
}

TEST(Offer, OfAFullResourceNothingMoreIsClaimedAndEachNameOfAPatternCountsByItself) {
    Rig rig;
    rig.options.slots = 16;
    rig.options.at_once_of_resource = {{"host:*", 2}, {"host:slow", 1}};
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Open();
    for (int i = 0; i < 4; ++i) {
        rig.Submit("t", {.needs = Needs{{"host:a", 1}}});
        rig.Submit("t", {.needs = Needs{{"host:b", 3}}});
        rig.Submit("t", {.needs = Needs{{"host:slow", 1}}});
    }
    rig.Submit("t", {.needs = Needs{{"gpu", 1}}});
    rig.worker->ClaimOnce();
    EXPECT_EQ(rig.worker->running(), 6) << "two of each host, one of the slow one, and the other";
    rig.worker->ClaimOnce();
    EXPECT_EQ(rig.worker->running(), 6) << "what is held here counts";
    rig.worker->RunOneAttempt();
    rig.worker->SettleOnce();
    rig.worker->ClaimOnce();
    EXPECT_EQ(rig.worker->running(), 6) << "the end of one is room for one";
    EXPECT_EQ(rig.Drive(), 12) << "in the end all of them";
}

TEST(Offer, ALimitOfATypeOverAllIsMadeOnceAndThenTheOperators) {
    Rig rig;
    HandlerEntry few{.type = "few", .defaults = {}, .handler = [](Context&, std::string_view) {
                         return Done();
                     }};
    few.at_once = 2;
    rig.registry.Add(std::move(few));
    rig.Open();
    store::ResourceStore& resources = rig.memory.Resources();
    EXPECT_EQ(resources.Find("type:few")->settings.capacity, 2);
    ASSERT_TRUE(resources.Change({.name = "type:few", .capacity = 5}, "operator"));
    rig.Open();
    EXPECT_EQ(resources.Find("type:few")->settings.capacity, 5) << "a restart does not undo it";
}

TEST(Offer, TheEndOfAHolderWakesThoseWhoWait) {
    Rig rig;
    rig.options.slots = 4;
    ASSERT_TRUE(rig.memory.Resources().Change({.name = "gpu", .capacity = 1}, "test"));
    int hints = 0;
    rig.wake.Subscribe([&](const wake::Hint& hint) {
        if (hint.kind == wake::Hint::Kind::kTaskAvailable && hint.queue == "q") ++hints;
    });
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Open();
    TaskId first = rig.Submit("t", {.queue = "q", .needs = Needs{{"gpu", 1}}});
    TaskId second = rig.Submit("t", {.queue = "q", .needs = Needs{{"gpu", 1}}});
    rig.worker->ClaimOnce();
    EXPECT_EQ(rig.worker->running(), 1);
    int before = hints;
    rig.worker->RunOneAttempt();
    rig.worker->SettleOnce();
    EXPECT_GT(hints, before) << "its unit is free";
    rig.Drive();
    EXPECT_EQ(rig.StateOf(first), State::kComplete);
    EXPECT_EQ(rig.StateOf(second), State::kComplete);
}

TEST(Offer, RequiredAtRunTimeIsPartOfTheNextClaim) {
    Rig rig;
    ASSERT_TRUE(rig.memory.Resources().Change({.name = "gpu", .capacity = 1}, "test"));
    int begun = 0;
    rig.Handle("t", [&](Context& context, std::string_view) {
        ++begun;
        context.Require("gpu");
        EXPECT_EQ(rig.memory.Resources().Find("gpu")->held, 1);
        return Done();
    });
    rig.Open();
    TaskId id = rig.Submit("t");
    rig.Drive();
    EXPECT_EQ(rig.StateOf(id), State::kComplete);
    EXPECT_EQ(begun, 2);
    EXPECT_EQ(rig.Get(id).attempt, 1);
    EXPECT_EQ(rig.memory.Resources().Find("gpu")->held, 0);
}

}  // namespace
}  // namespace stint::engine
