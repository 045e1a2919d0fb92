#include "engine/submit.h"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "base/planted_bug.h"
#include "support/engine_rig.h"

namespace stint::engine {
namespace {

model::NewTask Task(std::string type = "t") {
    model::NewTask task;
    task.type = std::move(type);
    return task;
}
std::size_t Stored(Rig& rig) {
    return rig.memory.List({}).tasks.size();
}

TEST(Submit, RefusesWhatIsInvalidAndAcceptsTheRest) {
    Rig rig;
    std::vector<model::NewTask> tasks{Task(), Task(""), Task()};
    auto ids = rig.submitter->Submit(tasks);
    ASSERT_EQ(ids.size(), 3u);
    EXPECT_TRUE(ids[0]);
    EXPECT_EQ(ids[1].error().code, Code::kInvalid);
    EXPECT_TRUE(ids[2]);
    EXPECT_EQ(Stored(rig), 2u);
}

TEST(Submit, ManyAreOneTripAndIdsComeInBlocks) {
    Rig rig;
    auto ids = rig.submitter->Submit(std::vector<model::NewTask>(500, Task()));
    EXPECT_EQ(ids.size(), 500u);
    EXPECT_TRUE(rig.submitter->Submit(Task()));
    EXPECT_EQ(rig.store.calls("reserve"), 1);
    EXPECT_EQ(rig.store.calls("submit"), 2);
}

TEST(Submit, IdsThatWereReservedLongAgoAreNotUsed) {
    Rig rig;
    TaskId early = rig.submitter->Submit(Task()).value();
    rig.memory.ReserveIds(100'000);
    rig.clock.Advance(model::limits::kIdsKept - 1s);
    EXPECT_EQ(rig.submitter->Submit(Task()).value().value(), early.value() + 1);
    rig.clock.Advance(1s);
    EXPECT_GT(rig.submitter->Submit(Task()).value().value(), early.value() + 100'000);
}

TEST(Submit, AnUnreachableStoreIsUnavailable) {
    Rig rig;
    rig.store.SetDown(true);
    EXPECT_EQ(rig.submitter->Submit(Task()).error().code, Code::kUnavailable);
}

TEST(Submit, AnUnknownCommitThatHappenedIsRecognised) {
    Rig rig;
    rig.store.Next("submit", Trouble::kUnknownAfter);
    auto id = rig.submitter->Submit(Task());
    ASSERT_TRUE(id);
    EXPECT_TRUE(rig.memory.Get(*id));
    EXPECT_EQ(Stored(rig), 1u);
    EXPECT_EQ(rig.store.calls("submit"), 1);
}

TEST(Submit, AnUnknownCommitThatDidNotHappenIsMadeUpFor) {
    Rig rig;
    rig.store.Next("submit", Trouble::kUnknownBefore);
    auto id = rig.submitter->Submit(Task());
    ASSERT_TRUE(id);
    EXPECT_EQ(Stored(rig), 1u);
}

// Submits on a thread of its own; the test moves the time, which the submitter waits for.
Result<TaskId> SubmitWhileTimePasses(Rig& rig, const model::NewTask& task) {
    std::atomic<bool> over = false;
    Result<TaskId> id = Error{};
    std::jthread submitter([&] {
        id = rig.submitter->Submit(task);
        over = true;
    });
    EXPECT_TRUE(Eventually([&] {
        rig.clock.Advance(10ms);  // slowly: the submitter must get its turns on a busy machine
        return over.load();
    }));
    return id;
}

TEST(Submit, WhenItCannotBeReadBackTheAnswerIsUnknown) {
    Rig rig;
    rig.store.Next("submit", Trouble::kUnknownAfter);
    rig.store.Next("get", Trouble::kUnavailable, 1000);
    base::Instant begun = rig.clock.Now();
    auto id = SubmitWhileTimePasses(rig, Task());
    ASSERT_EQ(id.error().code, Code::kUnknown);
    EXPECT_THAT(id.error().message, testing::HasSubstr("idempotency key"));
    EXPECT_THAT(id.error().message, testing::HasSubstr("task 1 may or may not be stored"));
    EXPECT_EQ(rig.store.calls("submit"), 1) << "never blindly repeated";
    EXPECT_GE(rig.store.calls("get"), 5);
    EXPECT_LE(rig.store.calls("get"), 30) << "with pauses";
    EXPECT_GE(rig.clock.Now() - begun, 3s) << "a server may restart meanwhile";
}

TEST(Submit, AServerThatRestartsMeanwhileIsWaitedFor) {
    Rig rig;
    rig.store.Next("submit", Trouble::kUnknownAfter);
    rig.store.Next("get", Trouble::kUnavailable, 6);
    auto id = SubmitWhileTimePasses(rig, Task());
    ASSERT_TRUE(id) << id.error().message;
    EXPECT_EQ(Stored(rig), 1u);
}

TEST(Submit, AReservationThatFailsIsUnavailableHoweverItFails) {
    Rig rig;
    for (Trouble trouble : {Trouble::kUnavailable, Trouble::kUnknownAfter, Trouble::kBug}) {
        rig.store.Next("reserve", trouble);
        EXPECT_EQ(rig.submitter->Submit(Task()).error().code, Code::kUnavailable);
    }
    EXPECT_EQ(Stored(rig), 0u);
}

TEST(Submit, WhateverTheStoreThrowsIsAnAnswer) {
    Rig rig;
    rig.store.Next("submit", Trouble::kBug);
    auto id = rig.submitter->Submit(Task());
    EXPECT_EQ(id.error().code, Code::kUnknown);
    EXPECT_FALSE(id.error().message.empty());
}

TEST(Submit, RefusedMembersKeepTheirOwnErrorAfterAnUnknownCommit) {
    Rig rig;
    model::NewTask keyed = Task();
    keyed.idempotency_key = "k";
    ASSERT_TRUE(rig.submitter->Submit(keyed));
    keyed.input = "2";
    rig.store.Next("submit", Trouble::kUnknownAfter);
    auto ids = rig.submitter->Submit({Task(), keyed, Task("")});
    EXPECT_TRUE(ids[0]);
    EXPECT_EQ(ids[1].error().code, Code::kConflict);
    EXPECT_EQ(ids[2].error().code, Code::kInvalid);
    EXPECT_EQ(Stored(rig), 2u);
}

TEST(Submit, PlantedUnknownResubmittedDoublesTheTask) {
    Rig rig;
    base::PlantBug(base::Bug::kUnknownResubmitted);
    rig.store.Next("submit", Trouble::kUnknownAfter);
    EXPECT_TRUE(rig.submitter->Submit(Task()));
    base::PlantBug(base::Bug::kNone);
    EXPECT_EQ(Stored(rig), 2u);
}

TEST(Submit, TheSameKeyIsTheSameTaskAlsoAfterAnUnknownCommit) {
    Rig rig;
    model::NewTask keyed = Task();
    keyed.idempotency_key = "k";
    auto first = rig.submitter->Submit(keyed);
    rig.store.Next("submit", Trouble::kUnknownAfter);
    auto second = rig.submitter->Submit(keyed);
    ASSERT_TRUE(first && second);
    EXPECT_EQ(*first, *second);
    keyed.input = "1";
    EXPECT_EQ(rig.submitter->Submit(keyed).error().code, Code::kConflict);
}

TEST(Submit, WakesClaimersAfterTheCommitOncePerQueue) {
    Rig rig;
    std::vector<std::string> heard;
    int number = rig.wake.Subscribe([&](const wake::Hint& hint) { heard.push_back(hint.queue); });
    std::vector<model::NewTask> tasks{Task(), Task(), Task(), Task()};
    tasks[2].queue = "other";
    tasks[3].delay = 1h;
    rig.submitter->Submit(tasks);
    EXPECT_THAT(heard, testing::UnorderedElementsAre("default", "other"));
    rig.wake.Unsubscribe(number);
}

TEST(Submit, TheWakeUpFindsTheTaskInTheStore) {
    Rig rig;
    std::vector<std::size_t> there;
    int number = rig.wake.Subscribe([&](const wake::Hint&) { there.push_back(Stored(rig)); });
    EXPECT_TRUE(rig.submitter->Submit(Task()));
    EXPECT_THAT(there, testing::ElementsAre(1u));
    rig.wake.Unsubscribe(number);
}

TEST(Submit, WhatCannotBeStoredIsInvalid) {
    Rig rig;
    rig.store.Next("submit", Trouble::kUnstorable);
    EXPECT_EQ(rig.submitter->Submit(Task()).error().code, Code::kInvalid);
}

TEST(Submit, InATransactionItHappensWithItsCommit) {
    Rig rig;
    auto submit = [&](bool commit) {
        return rig.memory.Write([&](store::Transaction& transaction) -> Result<void> {
            auto ids = rig.submitter->SubmitIn(transaction, {Task()});
            EXPECT_TRUE(ids.front());
            if (!commit) return Error{Code::kConflict, "no"};
            return {};
        });
    };
    EXPECT_FALSE(submit(false));
    EXPECT_EQ(Stored(rig), 0u);
    EXPECT_TRUE(submit(true));
    EXPECT_EQ(Stored(rig), 1u);
}

TEST(Submit, AFullQueueIsALimit) {
    Rig rig;
    rig.memory.SetQueue({.name = "default", .cap = 1}, "test");
    EXPECT_TRUE(rig.submitter->Submit(Task()));
    EXPECT_EQ(rig.submitter->Submit(Task()).error().code, Code::kLimit);
}

}  // namespace
}  // namespace stint::engine
