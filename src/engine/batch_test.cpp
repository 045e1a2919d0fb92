// Several tasks in one call of their handler, each with an end of its own.
#include <gmock/gmock.h>

#include "engine/attempts.h"
#include "support/engine_rig.h"

namespace stint::engine {
namespace {

using detail::ErasedEnd;
using detail::ErasedItem;
using model::State;
using testing::ElementsAre;
using testing::HasSubstr;
using Items = std::span<const ErasedItem>;
using Ends = std::vector<ErasedEnd>;

struct BatchRig : Rig {
    std::vector<std::size_t> sizes;  // of the calls, in order
    std::vector<TaskId> ids;

    explicit BatchRig(const std::function<Ends(Items)>& call, int most = 3, int slots = 4) {
        options.slots = slots;
        options.lease = model::LeasePolicy::Patient();
        registry.Add(
            {.type = "b",
             .defaults = {},
             .handler = {},
             .batch =
                 [this, call](Items items) {
                     sizes.push_back(items.size());
                     return call(items);
                 },
             .batch_most = most}
        );
    }
    void SubmitAndRun(int count, const model::NewTask& like = {}) {
        Open();
        for (int i = 0; i < count; ++i) ids.push_back(Submit("b", like));
        Drive();
    }
};

Ends AllDone(Items items) {
    return Ends(items.size());
}
ErasedEnd Fails(bool retryable) {
    return {.outcome = Outcome<std::string>(Failed{"no", retryable})};
}

TEST(Batch, TakesAsManyAsAreThereUpToItsLimitAndToTheSlots) {
    BatchRig rig(AllDone);
    rig.SubmitAndRun(7);
    EXPECT_THAT(rig.sizes, ElementsAre(3, 3, 1)) << "four slots; batches of three";
    for (TaskId id : rig.ids) EXPECT_EQ(rig.StateOf(id), State::kComplete);
    EXPECT_EQ(rig.metrics.completed, 7u);
}

TEST(Batch, ALargeOneIsWholeAlsoAfterAnIdleMoment) {
    BatchRig rig(AllDone, 200, 1);
    rig.options.claim_ahead = 200;
    rig.SubmitAndRun(150);
    EXPECT_THAT(rig.sizes, ElementsAre(150));
}

TEST(Batch, OthersOfTheProcessAreNotDrawnIn) {
    BatchRig rig(AllDone, 10);
    int alone = 0;
    rig.Handle("other", [&](Context&, std::string_view) { return ++alone, Done(); });
    rig.Open();
    rig.Submit("b");
    rig.Submit("other");
    rig.Submit("b");
    rig.Drive();
    EXPECT_THAT(rig.sizes, ElementsAre(2));
    EXPECT_EQ(alone, 1);
}

TEST(Batch, EachEndsByItself) {
    BatchRig rig([](Items items) {
        Ends ends(items.size());
        ends[0].outcome = Outcome<std::string>(std::in_place_index<0>, "1");
        ends[1] = Fails(false);
        ends[2].outcome = Outcome<std::string>(Snooze{std::chrono::hours{1}});
        return ends;
    });
    rig.SubmitAndRun(3);
    EXPECT_EQ(rig.Get(rig.ids[0]).output, "1");
    EXPECT_EQ(rig.StateOf(rig.ids[1]), State::kDead);
    EXPECT_EQ(rig.StateOf(rig.ids[2]), State::kOpen);
    EXPECT_EQ(rig.Get(rig.ids[2]).attempt, 0);
}

TEST(Batch, WhatItThrowsIsTheFailureOfAll) {
    BatchRig rig([](Items) -> Ends { throw Retryable("the index is locked"); });
    rig.SubmitAndRun(2);
    for (TaskId id : rig.ids) {
        EXPECT_EQ(rig.StateOf(id), State::kError);
        EXPECT_EQ(rig.Get(id).error->message, "the index is locked");
    }
}

TEST(Batch, ACancelReachesOneOfThem) {
    BatchRig* self = nullptr;
    BatchRig rig([&](Items items) {
        TaskId second = items[1].context->id();
        self->memory.Cancel(std::span(&second, 1), "test", "no longer needed");
        self->worker->RenewOnce();
        EXPECT_FALSE(items[0].context->stop().stop_requested());
        EXPECT_TRUE(items[1].context->stop().stop_requested());
        EXPECT_EQ(items[1].context->why(), StopReason::kCancelled);
        Ends ends(items.size());
        ends[1] = Fails(true);
        return ends;
    });
    self = &rig;
    rig.SubmitAndRun(3);
    EXPECT_EQ(rig.StateOf(rig.ids[0]), State::kComplete);
    EXPECT_EQ(rig.StateOf(rig.ids[1]), State::kCancelled);
    EXPECT_EQ(rig.StateOf(rig.ids[2]), State::kComplete);
}

TEST(Batch, LeasesThatAreLostAreFencedOneByOne) {
    BatchRig* self = nullptr;
    bool first = true;
    BatchRig rig([&](Items items) {
        if (std::exchange(first, false)) {
            self->clock.Advance(std::chrono::hours{1});
            self->memory.Reclaim({});
            self->worker->RenewOnce();
            EXPECT_EQ(items[0].context->why(), StopReason::kLeaseLost);
        }
        return Ends(items.size());
    });
    self = &rig;
    rig.SubmitAndRun(2);
    EXPECT_EQ(rig.metrics.lost, 2u) << "the fence refused both";
    EXPECT_TRUE(rig.Logged("stale write rejected"));
    // They crashed with their worker, as far as the store knows, and run again.
    rig.clock.Advance(std::chrono::minutes{1});
    rig.Drive();
    for (TaskId id : rig.ids) {
        EXPECT_EQ(rig.StateOf(id), State::kComplete);
        EXPECT_EQ(rig.Get(id).claim_no, 2);
    }
}

TEST(Batch, OneThatHangsCostsOneThreadAndTheOthersNoAttempt) {
    BatchRig* self = nullptr;
    bool first = true;
    BatchRig rig([&](Items items) {
        if (std::exchange(first, false)) {
            self->clock.Advance(15s);  // its timeout and the grace
            self->worker->WatchOnce();
            self->worker->SettleOnce();
        }
        return Ends(items.size());
    });
    self = &rig;
    rig.Open();
    TaskId hangs = rig.Submit("b", {.timeout = 5s});
    TaskId other = rig.Submit("b");
    rig.worker->ClaimOnce();
    rig.worker->RunOneAttempt();
    rig.worker->SettleOnce();
    EXPECT_EQ(rig.StateOf(hangs), State::kError) << "the late output was not accepted";
    EXPECT_EQ(rig.Get(hangs).error->klass, "timeout");
    EXPECT_EQ(rig.StateOf(other), State::kOpen) << "handed back";
    EXPECT_EQ(rig.Get(other).attempt, 0);
    EXPECT_EQ(rig.metrics.hung, 1u);
    EXPECT_EQ(rig.metrics.lost, 0u) << "nothing late was even sent";
    for (int i = 0; i < 5; ++i) rig.Submit("b");
    rig.worker->ClaimOnce();
    EXPECT_EQ(rig.worker->running(), 3) << "four slots, one thread lost";
}

TEST(Batch, WhoGivesUpOneGivesUpAllAndTheReturningThreadTouchesNothing) {
    Crew crew;
    EXPECT_TRUE(crew.Abandon());
    EXPECT_TRUE(crew.Abandon()) << "the next one of it, too";
    EXPECT_FALSE(crew.Return());
    EXPECT_TRUE(crew.CountLoss());
    EXPECT_FALSE(crew.CountLoss());
    Crew returned;
    EXPECT_TRUE(returned.Return());
    EXPECT_FALSE(returned.Abandon());
}

TEST(Batch, OneThatIgnoresEverythingCannotHoldUpStop) {
    auto gate = std::make_shared<Gate>();
    auto left = std::make_shared<std::atomic<bool>>(false);
    {
        ThreadedRig rig;
        rig.options.slots = 4;
        HandlerEntry entry{.type = "stuck", .defaults = {}, .handler = {}};
        entry.batch = [gate, left](Items items) {
            gate->Pass();
            items[0].context->Progress("still here", 1);  // its context outlives the worker
            *left = true;
            return Ends(items.size());
        };
        entry.batch_most = 4;
        rig.registry.Add(std::move(entry));
        TaskId first = rig.Submit("stuck"), second = rig.Submit("stuck");
        rig.Make().Start();
        ASSERT_TRUE(gate->WaitForVisitors(1));
        rig.worker->StopNow();
        for (TaskId id : {first, second}) {
            EXPECT_EQ(rig.StateOf(id), State::kOpen) << "handed back";
            EXPECT_EQ(rig.Get(id).attempt, 0);
        }
        EXPECT_TRUE(rig.Logged("left behind"));
    }  // worker, store and registry are gone
    gate->Open();
    EXPECT_TRUE(Eventually([&] { return left->load(); }));
}

TEST(Batch, IsRefusedForIsolatedTypesAndForWrongSizes) {
    Registry registry;
    auto message = [&](HandlerEntry entry) -> std::string {
        try {
            registry.Add(std::move(entry));
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "accepted";
    };
    HandlerEntry isolated{
        .type = "i", .defaults = {}, .handler = {}, .isolation = {.enabled = true}};
    isolated.batch = AllDone;
    isolated.batch_most = 2;
    EXPECT_THAT(message(isolated), HasSubstr("process of its own"));
    HandlerEntry none{.type = "n", .defaults = {}, .handler = {}};
    none.batch = AllDone;
    none.batch_most = 0;
    EXPECT_THAT(message(none), HasSubstr("a batch at least 1"));
}

}  // namespace
}  // namespace stint::engine
