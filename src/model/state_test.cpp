#include "model/state.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace stint::model {
namespace {

using enum State;

std::vector<std::optional<State>> AllFrom() {
    std::vector<std::optional<State>> all = {std::nullopt};
    for (int i = 0; i < kStateCount; ++i) all.emplace_back(static_cast<State>(i));
    return all;
}

// Written out a second time, from the source documents, so that a slip in the table is seen.
TEST(States, EveryPairOfStateAndEventIsDecided) {
    std::map<std::pair<std::optional<State>, Event>, State> expected = {
        {{std::nullopt, Event::kSubmit}, kOpen},
        {{kOpen, Event::kClaim}, kInProgress},
        {{kOpen, Event::kCancel}, kCancelled},
        {{kOpen, Event::kExpire}, kDead},
        {{kOpen, Event::kEdit}, kOpen},
        {{kOpen, Event::kBlock}, kBlocked},
        {{kInProgress, Event::kComplete}, kComplete},
        {{kInProgress, Event::kBlock}, kBlocked},
        {{kInProgress, Event::kBackground}, kBackground},
        {{kInProgress, Event::kFailRetryable}, kError},
        {{kInProgress, Event::kFailFinal}, kDead},
        {{kInProgress, Event::kSnooze}, kOpen},
        {{kInProgress, Event::kRelease}, kOpen},
        {{kInProgress, Event::kReclaim}, kOpen},
        {{kInProgress, Event::kQuarantine}, kDead},
        {{kInProgress, Event::kCancel}, kCancelled},
        {{kBlocked, Event::kUnblock}, kOpen},
        {{kBlocked, Event::kCancel}, kCancelled},
        {{kBackground, Event::kComplete}, kComplete},
        {{kBackground, Event::kFailRetryable}, kError},
        {{kBackground, Event::kFailFinal}, kDead},
        {{kBackground, Event::kBackgroundTimeout}, kOpen},
        {{kBackground, Event::kCancel}, kCancelled},
        {{kError, Event::kRetryDue}, kOpen},
        {{kError, Event::kOperatorRetry}, kOpen},
        {{kError, Event::kCancel}, kCancelled},
        {{kError, Event::kExpire}, kDead},
        {{kError, Event::kFailFinal}, kDead},
        {{kError, Event::kEdit}, kError},
        {{kDead, Event::kOperatorRetry}, kOpen},
        {{kCancelled, Event::kOperatorRetry}, kOpen},
    };
    for (auto from : AllFrom()) {
        for (int e = 0; e < kEventCount; ++e) {
            auto event = static_cast<Event>(e);
            auto found = expected.find({from, event});
            auto want = found == expected.end() ? std::nullopt : std::optional(found->second);
            EXPECT_EQ(Next(from, event), want)
                << (from ? StateName(*from) : "none") << " + " << EventName(event);
        }
    }
    EXPECT_EQ(Transitions().size(), expected.size());
}

TEST(States, NoPairStandsTwiceInTheTable) {
    std::set<std::pair<std::optional<State>, Event>> seen;
    for (const Transition& t : Transitions()) {
        EXPECT_TRUE(seen.insert({t.from, t.event}).second) << EventName(t.event);
        EXPECT_FALSE(t.who.empty());
        EXPECT_FALSE(t.what.empty());
    }
}

TEST(States, OnlyAnOperatorLeavesATerminalState) {
    for (const Transition& t : Transitions()) {
        if (!t.from || !IsTerminal(*t.from)) continue;
        EXPECT_EQ(t.event, Event::kOperatorRetry);
    }
    EXPECT_FALSE(Next(kComplete, Event::kOperatorRetry));
}

TEST(States, EveryLiveStateCanBeCancelled) {
    for (int i = 0; i < kStateCount; ++i) {
        auto state = static_cast<State>(i);
        EXPECT_EQ(Next(state, Event::kCancel).has_value(), !IsTerminal(state)) << StateName(state);
    }
}

TEST(States, NamesGoBothWays) {
    std::set<std::string_view> names;
    for (int i = 0; i < kStateCount; ++i) {
        auto state = static_cast<State>(i);
        EXPECT_EQ(StateNamed(StateName(state)), state);
        EXPECT_EQ(StateNamed(StateCode(state)), state);
        names.insert(StateName(state));
    }
    for (int i = 0; i < kEventCount; ++i) {
        auto event = static_cast<Event>(i);
        EXPECT_EQ(EventNamed(EventName(event)), event);
        names.insert(EventName(event));
    }
    // "complete" and "background" name both a state and an event.
    EXPECT_EQ(names.size(), static_cast<std::size_t>(kStateCount + kEventCount - 2));
    EXPECT_EQ(StateNamed("Open"), std::nullopt);
    EXPECT_EQ(EventNamed(""), std::nullopt);
}

TEST(States, TheNumbersThatAreStoredDoNotChange) {
    EXPECT_EQ(static_cast<int>(kOpen), 0);
    EXPECT_EQ(static_cast<int>(kInProgress), 1);
    EXPECT_EQ(static_cast<int>(kBlocked), 2);
    EXPECT_EQ(static_cast<int>(kBackground), 3);
    EXPECT_EQ(static_cast<int>(kComplete), 4);
    EXPECT_EQ(static_cast<int>(kError), 5);
    EXPECT_EQ(static_cast<int>(kCancelled), 6);
    EXPECT_EQ(static_cast<int>(kDead), 7);
}

TEST(States, ThePageInTheDocsIsPrintedFromTheTable) {
    const std::string path = STINT_SOURCE_DIR "/docs/internals/states.md";
    if (std::getenv("STINT_UPDATE_DOCS") != nullptr) {
        std::ofstream(path, std::ios::trunc) << StatesDocument();
    }
    std::ifstream file(path);
    std::stringstream content;
    content << file.rdbuf();
    EXPECT_TRUE(content.str() == StatesDocument())
        << "docs/internals/states.md differs from the transition table. Rewrite it with:\n"
        << "    STINT_UPDATE_DOCS=1 <build directory>/model_test --gtest_filter='States.ThePage*'";
}

}  // namespace
}  // namespace stint::model
