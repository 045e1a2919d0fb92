// Items, checkpoints and deletions as a program sees them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stint/stint.h>
#include <stint/testing.h>

#include "node/engine_impl.h"

namespace stint {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::TestEngine;

constexpr Task<std::vector<std::string>, int> kSync{"sync", {.retry = Retry::Times(2)}};
constexpr Task<void, int> kCopy{"copy", {.retry = Retry::Times(9)}};
constexpr Task<std::string, void> kDelete{"delete-user"};
constexpr Task<std::string, void> kRevoke{"revoke", {.retry = Retry::Times(1)}};

// Objects whose names begin with "bad" cannot be synchronised.
int Sync(Context& context, const std::vector<std::string>& objects) {
    for (const std::string& object : objects) {
        ItemResult item{.key = object, .action = "update", .after = {"{\"seen\":true}"}};
        if (object.starts_with("bad")) item.error = "refused";
        context.Item(item);
    }
    return static_cast<int>(objects.size());
}

TEST(Items, NoneInErrorIsComplete) {
    TestEngine test;
    test.Handle(kSync, Sync);
    auto run = test.Submit(kSync, {"a", "b"}).value();
    test.RunUntilIdle();
    TaskInfo task = test.engine().Get(run.id()).value();
    EXPECT_EQ(task.state, "complete");
    EXPECT_FALSE(task.warning);
    EXPECT_EQ(test.engine().CountItems(run.id()).value(), (ItemCounts{2, 0}));
}

TEST(Items, SomeInErrorIsCompleteWithAWarning) {
    TestEngine test;
    test.Handle(kSync, Sync);
    auto run = test.Submit(kSync, {"a", "bad", "c"}).value();
    test.RunUntilIdle();
    TaskInfo task = test.engine().Get(run.id()).value();
    EXPECT_EQ(task.state, "complete");
    EXPECT_TRUE(task.warning);
    EXPECT_EQ(task.reason, "1 of 3 items are in error");
    auto errors = test.engine().Items(run.id(), true).value();
    ASSERT_THAT(errors, SizeIs(1));
    EXPECT_EQ(errors[0].key, "bad");
    EXPECT_EQ(errors[0].error, "refused");
    EXPECT_EQ(errors[0].after.text, "{\"seen\":true}");
}

TEST(Items, AllInErrorIsAFailureWithTheTasksPolicy) {
    TestEngine test;
    test.Handle(kSync, Sync);
    auto run = test.Submit(kSync, {"bad1", "bad2"}).value();
    test.RunUntilIdle();
    EXPECT_EQ(test.engine().Get(run.id()).value().state, "error");
    test.RunUntilDone();
    TaskInfo task = test.engine().Get(run.id()).value();
    EXPECT_EQ(task.state, "dead");
    EXPECT_EQ(task.attempt, 2);
    EXPECT_EQ(task.error, "all 2 items are in error");
    EXPECT_EQ(task.error_class, "items");
    EXPECT_EQ(test.engine().CountItems(run.id()).value(), (ItemCounts{2, 2}));
}

TEST(Items, AreJudgedWhicheverRunCompletesTheTask) {
    TestEngine test;
    constexpr Task<void, int> kOnce{"once", {.retry = Retry::Times(1)}};
    test.Handle(kOnce, [](Context& context) -> Outcome<int> {
        if (context.fencing_number() > 1) return 7;  // it knows nothing of them any more
        context.Item({.key = "a", .error = "refused"});
        return Snooze{1h};
    });
    auto run = test.Submit(kOnce).value();
    test.RunUntilDone();
    EXPECT_EQ(test.engine().Get(run.id()).value().state, "dead");
    EXPECT_EQ(test.engine().Get(run.id()).value().error, "its only item is in error");
}

TEST(Items, ManyAreWrittenInBatchesAndPaged) {
    TestEngine test;
    test.Handle(kCopy, [](Context& context) {
        for (int i = 0; i < 1'234; ++i) context.Item({.key = fmt::format("{:05}", i)});
        return static_cast<int>(context.FlushItems().total);
    });
    auto run = test.Submit(kCopy).value();
    test.RunUntilIdle();
    EXPECT_EQ(run.Wait().value(), 1'234);
    auto page = test.engine().Items(run.id(), false, "01200", 1'000).value();
    ASSERT_THAT(page, SizeIs(33));
    EXPECT_EQ(page.front().key, "01201");
    EXPECT_EQ(test.engine().Items(run.id(), false, {}, 0).error().code, Code::kInvalid);
}

TEST(Items, WhatIsOverALimitIsRefusedByName) {
    TestEngine test;
    std::vector<std::string> said;
    test.Handle(kCopy, [&](Context& context) {
        auto refused = [&](const ItemResult& item) {
            try {
                context.Item(item);
            } catch (const std::invalid_argument& error) {
                said.emplace_back(error.what());
            }
        };
        refused({.key = ""});
        refused({.key = "k", .after = {"{"}});
        refused({.key = "k", .before = {"\"" + std::string(70'000, 'x') + "\""}});
        try {
            context.Checkpoint(std::string(70'000, 'x'));
        } catch (const std::invalid_argument& error) {
            said.emplace_back(error.what());
        }
        return 1;
    });
    ASSERT_TRUE(test.Submit(kCopy));
    test.RunUntilIdle();
    EXPECT_THAT(
        said,
        ElementsAre(
            HasSubstr("key is \"\""),
            HasSubstr("after is not JSON"),
            HasSubstr("before is 70002 bytes; the limit is 65536"),
            HasSubstr("the checkpoint is 70002 bytes; the limit is 65536")
        )
    );
}

TEST(Checkpoints, TheNextAttemptGoesOnWhereTheLastWas) {
    TestEngine test;
    std::vector<int> pages;
    test.Handle(kCopy, [&](Context& context) -> int {
        int from = context.checkpoint<int>().value_or(0);
        for (int page = from; page < 10; ++page) {
            // Fails in the middle of every third page.
            if (page % 3 == 2 && context.attempt() <= page / 3 + 1) throw Retryable("lost");
            pages.push_back(page);
            context.Item({.key = std::to_string(page)});
            context.Checkpoint(page + 1);
        }
        return static_cast<int>(context.FlushItems().total);
    });
    auto run = test.Submit(kCopy).value();
    test.RunUntilDone();
    EXPECT_EQ(run.Wait().value(), 10);
    EXPECT_THAT(pages, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9)) << "each page once";
}

TEST(Checkpoints, ACancelAtABoundaryKeepsWhatWasDone) {
    TestEngine test;
    std::optional<TaskId> id;
    int stopped_at = -1;
    test.Handle(kCopy, [&](Context& context) -> int {
        for (int page = 0; page < 10; ++page) {
            if (context.stop().stop_requested()) {
                EXPECT_EQ(context.why(), StopReason::kCancelled);
                stopped_at = page;
                throw std::runtime_error("stopped");
            }
            context.Item({.key = std::to_string(page)});
            context.Checkpoint(page + 1);
            if (page != 3) continue;
            store::Store& store = *test.engine().impl().store;
            store.Cancel({&*id, 1}, "ann", "enough");
            test.engine().impl().worker->RenewOnce();
        }
        return 10;
    });
    id = test.Submit(kCopy).value().id();
    test.RunUntilDone();
    EXPECT_EQ(stopped_at, 4);
    EXPECT_EQ(test.engine().Get(*id).value().state, "cancelled");
    EXPECT_EQ(test.engine().CountItems(*id).value(), (ItemCounts{4, 0}));
    auto kept = test.engine().impl().store->Results().Summary(*id).checkpoint;
    ASSERT_TRUE(kept.has_value());
    EXPECT_EQ(kept->json, "4");
}

// ---- deletions ---------------------------------------------------------------------------------

struct DeletionTest : ::testing::Test {
    DeletionTest() {
        test.Handle(kDelete, [this](Context&, const std::string& user) {
            if (user == "meddled with") {
                auto again = Mark(user);
                done.push_back(again ? "marked" : again.error().message);
            }
            done.push_back("delete " + user);
        });
        test.Handle(kRevoke, [this](Context&, const std::string& user) {
            if (user == "stuck") throw Permanent("the directory says no");
            done.push_back("revoke " + user);
        });
    }
    Result<DeletionInfo> Mark(const std::string& user, Duration grace = 1h) {
        return test.engine().deletions().Mark(
            "user",
            user,
            {.task = Later(kDelete, user),
             .follow_ups = {Later(kRevoke, user)},
             .grace = grace,
             .initiator = "operator:ann"}
        );
    }
    TestEngine test;
    std::vector<std::string> done;
};

TEST_F(DeletionTest, FollowUpsComeFirstAndTheInitiatorIsKept) {
    auto marked = Mark("bob");
    ASSERT_TRUE(marked) << marked.error().message;
    EXPECT_EQ(marked->state, "marked");
    test.AdvanceTime(59min);
    test.RunUntilIdle();
    EXPECT_THAT(done, IsEmpty());
    test.AdvanceTime(2min);
    test.RunUntilIdle();
    EXPECT_THAT(done, ElementsAre("revoke bob", "delete bob"));
    auto listed = test.engine().deletions().List().value();
    ASSERT_THAT(listed, SizeIs(1));
    EXPECT_EQ(listed[0].state, "begun");
    EXPECT_EQ(listed[0].initiator, "operator:ann");
    EXPECT_EQ(test.engine().Get(*listed[0].task).value().state, "complete");
    // Whoever reads the audit log of what was done finds who wanted it, not the sweep.
    store::Store& store = *test.engine().impl().store;
    for (const char* type : {"revoke", "delete-user"}) {
        auto audit = store.Audit({.task = test.OfType(type).at(0).id});
        ASSERT_FALSE(audit.empty());
        EXPECT_EQ(audit.front().actor, "operator:ann") << type;
    }
}

TEST_F(DeletionTest, OneThatRunsIsNotMarkedAgain) {
    ASSERT_TRUE(Mark("meddled with", 0s));
    test.RunUntilIdle();
    ASSERT_THAT(done, SizeIs(3));
    EXPECT_THAT(done[1], HasSubstr("is running; its task is"));
    EXPECT_TRUE(Mark("meddled with")) << "it is over";
}

TEST_F(DeletionTest, ACapBeyondWhatIsTakenTogetherIsKept) {
    ASSERT_TRUE(test.engine().deletions().SetPace("user", {.cap = 700, .every = 10min}));
    for (int i = 0; i < 750; ++i) ASSERT_TRUE(Mark("u" + std::to_string(i), 0s));
    test.engine().impl().deletions->RunOnce();
    EXPECT_THAT(test.OfType("stint.steps"), SizeIs(700));
    test.engine().impl().deletions->RunOnce();
    EXPECT_THAT(test.OfType("stint.steps"), SizeIs(700));
}

TEST_F(DeletionTest, AFollowUpThatFailsPreventsIt) {
    ASSERT_TRUE(Mark("stuck"));
    test.AdvanceTime(2h);
    test.RunUntilDone();
    EXPECT_THAT(done, IsEmpty());
    auto listed = test.engine().deletions().List("user").value();
    TaskInfo task = test.engine().Get(*listed.at(0).task).value();
    EXPECT_EQ(task.state, "dead");
    EXPECT_THAT(task.error, HasSubstr("the directory says no"));
}

TEST_F(DeletionTest, ItCanBeTakenBackInTime) {
    ASSERT_TRUE(Mark("bob"));
    EXPECT_EQ(test.engine().deletions().Unmark("user", "eve").error().code, Code::kNotFound);
    ASSERT_TRUE(test.engine().deletions().Unmark("user", "bob"));
    test.AdvanceTime(2h);
    test.RunUntilIdle();
    EXPECT_THAT(done, IsEmpty());
    ASSERT_TRUE(Mark("bob", 0s));
    test.RunUntilIdle();
    EXPECT_EQ(test.engine().deletions().Unmark("user", "bob").error().code, Code::kConflict);
}

TEST_F(DeletionTest, NoMoreThanTheCapBeginPerCycle) {
    ASSERT_TRUE(test.engine().deletions().SetPace("user", {.cap = 3, .every = 10min}));
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(Mark("u" + std::to_string(i), 0s));
    std::vector<std::size_t> begun;
    for (int cycle = 0; cycle < 4; ++cycle) {
        test.RunUntilIdle();
        begun.push_back(test.OfType("delete-user").size());
        test.AdvanceTime(11min);
    }
    EXPECT_THAT(begun, ElementsAre(3, 6, 8, 8));
    EXPECT_THAT(
        test.engine().deletions().SetPace("user", {.cap = 0}).error().message,
        HasSubstr("cap is 0; it must be between 1 and")
    );
}

}  // namespace
}  // namespace stint
