// Turns of queues through the public interface, on whatever store an address names.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stint/stint.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <vector>

#include "support/engine_rig.h"

namespace stint::testing {

// Handlers that stay until their turn to end has come: the first that began ends first.
class Lineup {
public:
    // Returns when this one may end.
    void Enter(TenantId tenant) {
        std::unique_lock lock(mutex_);
        std::size_t place = begun_.size();
        begun_.push_back(tenant);
        changed_.notify_all();
        changed_.wait(lock, [&] { return place < ended_; });
    }
    // False: so many never began.
    bool AwaitBegun(std::size_t count) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, std::chrono::seconds{30}, [&] {
            return begun_.size() >= count;
        });
    }
    void EndFirst(std::size_t count) {
        std::lock_guard guard(mutex_);
        ended_ = count;
        changed_.notify_all();
    }
    // Of the first so many that began.
    std::map<TenantId, int> Begun(std::size_t count) {
        std::lock_guard guard(mutex_);
        std::map<TenantId, int> tenants;
        for (std::size_t i = 0; i < std::min(count, begun_.size()); ++i) ++tenants[begun_[i]];
        return tenants;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<TenantId> begun_;
    std::size_t ended_ = 0;
};

inline constexpr TenantId kHeavy{1}, kLight{2};
inline constexpr std::size_t kTurnSlots = 4, kOfHeavy = 60, kOfLight = 12;

inline Options TurnOptions(const std::string& store) {
    Options options;
    options.store = store;
    options.slots = kTurnSlots;
    options.prefetch = 0;
    options.poll = {.min = std::chrono::milliseconds{1}, .max = std::chrono::milliseconds{10}};
    return options;
}

// The heavy tenant's tasks come first. How many tasks began until all of the light one's had.
inline std::size_t BegunUntilLightIsThrough(Engine& engine, const std::string& queue) {
    constexpr Task<int, void> kWork{"turns.work"};
    Lineup lineup;
    engine.Handle(kWork, [&](Context& context, const int&) { lineup.Enter(context.tenant()); });
    auto submit = [&](TenantId tenant, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            ASSERT_TRUE(engine.Submit(kWork, 1, {.queue = queue, .tenant = tenant}));
        }
    };
    submit(kHeavy, kOfHeavy);
    submit(kLight, kOfLight);
    engine.Start();
    std::size_t begun = kTurnSlots;
    for (;; ++begun) {
        EXPECT_TRUE(lineup.AwaitBegun(begun)) << begun;
        bool through = lineup.Begun(begun)[kLight] == static_cast<int>(kOfLight);
        if (through || begun >= kOfHeavy + kOfLight || ::testing::Test::HasFailure()) break;
        lineup.EndFirst(begun - kTurnSlots + 1);
    }
    lineup.EndFirst(kOfHeavy + kOfLight);
    engine.Stop();
    return begun;
}

// While both wait, three of four that run are the light tenant's: some sixteen, then. A slot may be
// filled before the store knows of the end that freed it, which moves a few.
inline void ExpectTurnsByWeight(const std::string& store) {
    Engine engine(TurnOptions(store));
    ASSERT_TRUE(engine.queues().SetTurns("mail", {.weights = {{kLight, 3}}}));
    EXPECT_LE(BegunUntilLightIsThrough(engine, "mail"), 2 * kOfLight + kTurnSlots);
}

// Nobody has set anything: who came first goes first.
inline void ExpectTurnsByPlace(const std::string& store) {
    Engine engine(TurnOptions(store));
    ASSERT_TRUE(engine.queues().SetTurns("mail", {.weights = {{kLight, 3}}}));
    EXPECT_GE(BegunUntilLightIsThrough(engine, "other"), kOfHeavy + 1);
}

// After the steps that are between it and the highest priority a task waits for nothing that came
// after it.
inline void ExpectAgingToLift(const std::string& store) {
    using std::chrono::milliseconds;
    constexpr Task<int, void> kWork{"turns.age"};
    Options options = TurnOptions(store);
    options.slots = 1;
    Engine engine(options);
    ASSERT_TRUE(engine.queues().SetTurns("*", {.aging = milliseconds{1}}));
    std::mutex mutex;
    std::vector<int> order;
    engine.Handle(kWork, [&](Context&, const int& number) {
        std::lock_guard guard(mutex);
        order.push_back(number);
    });
    auto low = engine.Submit(kWork, 0, {.priority = 155}).value();
    Time aged = engine.Get(low.id())->created_at + milliseconds{110};
    // By the store's clock, which gives each task its time.
    ASSERT_TRUE(engine::Eventually([&] {
        auto mark = engine.Submit(kWork, -1, {.priority = 0, .delay = std::chrono::hours{1}});
        return mark && engine.Get(mark->id())->created_at >= aged;
    }));
    std::vector<Run<void>> urgent;
    for (int i = 1; i <= 10; ++i) {
        urgent.push_back(engine.Submit(kWork, i, {.priority = 255}).value());
    }
    engine.Start();
    for (auto& run : urgent) EXPECT_TRUE(run.WaitFor(std::chrono::seconds{30}));
    std::lock_guard guard(mutex);
    ASSERT_FALSE(order.empty());
    EXPECT_EQ(order.front(), 0);
}

inline void ExpectTurnsToBeKept(const std::string& store) {
    using namespace std::chrono_literals;
    using ::testing::ElementsAre;
    using ::testing::HasSubstr;
    using ::testing::Pair;
    Engine engine(TurnOptions(store));
    Queues queues = engine.queues();
    QueueTurns mail{.fair = true, .weights = {{TenantId(7), 3}}, .aging = 5min};
    QueueTurns rest{.fair = false, .weights = {}, .aging = 1h};
    EXPECT_EQ(queues.Turns("mail").value(), QueueTurns{});
    ASSERT_TRUE(queues.SetTurns("mail", mail));
    ASSERT_TRUE(queues.SetTurns("*", rest));
    EXPECT_EQ(queues.Turns("mail").value(), mail);
    EXPECT_EQ(queues.Turns("other").value(), rest);
    EXPECT_THAT(queues.AllTurns().value(), ElementsAre(Pair("*", rest), Pair("mail", mail)));
    auto refused = [&](const QueueTurns& turns) {
        return queues.SetTurns("mail", turns).error().message;
    };
    EXPECT_THAT(
        refused({.weights = {{TenantId(7), 0}}}),
        HasSubstr("the weight of tenant 7 is 0; it must be between 1 and")
    );
    EXPECT_THAT(refused({.weights = {{TenantId(0), 1}}}), HasSubstr("tenants are numbered from 1"));
    EXPECT_THAT(refused({.aging = -1s}), HasSubstr("aging is -1"));
    EXPECT_THAT(queues.SetTurns("", mail).error().message, HasSubstr("give the name of a queue"));
    EXPECT_EQ(queues.Turns("mail").value(), mail) << "what is refused changes nothing";
    EXPECT_TRUE(queues.RemoveTurns("mail").value());
    EXPECT_FALSE(queues.RemoveTurns("mail").value());
    EXPECT_EQ(queues.Turns("mail").value(), rest);
}

}  // namespace stint::testing
