// Tasks that were running in a process that crashed run alone, and hold up others only so long.
#include <gmock/gmock.h>

#include "engine/worker.h"
#include "support/engine_rig.h"

namespace stint::engine {
namespace {

using model::State;
using model::WorkerState;

struct SuspectRig : Rig {
    // Kills a worker that holds `count` tasks, all of them started, and recovers them.
    std::vector<TaskId> MakeSuspects(int count) {
        options.slots = count;
        Make();
        worker->Open();
        std::vector<TaskId> ids;
        for (int i = 0; i < count; ++i) ids.push_back(Submit("t"));
        worker->ClaimOnce();
        EXPECT_EQ(worker->running(), count);
        worker.reset();
        clock.Advance(31s);
        options.slots = 2;
        Open();
        clock.Advance(1s);
        worker->RenewOnce();
        return ids;
    }
};

TEST(Suspects, RunAloneOneByOne) {
    SuspectRig rig;
    int most = 0;
    rig.Handle("t", [&](Context&, std::string_view) {
        most = std::max(most, rig.worker->running());
        return Done();
    });
    auto suspects = rig.MakeSuspects(3);
    for (TaskId id : suspects) EXPECT_TRUE(rig.Get(id).suspect);
    EXPECT_EQ(rig.Drive(), 3);
    EXPECT_EQ(most, 1);
    for (TaskId id : suspects) {
        EXPECT_EQ(rig.StateOf(id), State::kComplete);
        EXPECT_TRUE(rig.memory.Attempts(id).back().alone);
    }
}

TEST(Suspects, WaitUntilOrdinaryAttemptsHaveEnded) {
    SuspectRig rig;
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Handle("slow", [](Context&, std::string_view) { return Done(); });
    rig.Open();
    auto suspects = rig.MakeSuspects(1);
    rig.Submit("slow");
    rig.worker->ClaimOnce();  // the ordinary one, and news of the suspect
    EXPECT_EQ(rig.worker->running(), 1);
    rig.Submit("slow");
    rig.worker->ClaimOnce();
    EXPECT_EQ(rig.worker->running(), 1) << "claims nothing beside";
    rig.worker->RunOneAttempt();
    rig.worker->SettleOnce();
    rig.worker->ClaimOnce();
    EXPECT_EQ(rig.worker->running(), 1);
    EXPECT_EQ(rig.StateOf(suspects.front()), State::kInProgress);
    rig.worker->ClaimOnce();
    EXPECT_EQ(rig.worker->running(), 1) << "nothing beside the suspect either";
    rig.Drive();
    EXPECT_EQ(rig.StateOf(suspects.front()), State::kComplete);
}

TEST(Suspects, ALongTaskHereKeepsNobodyWaitingForLongerThanALease) {
    SuspectRig rig;
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Handle("slow", [](Context&, std::string_view) { return Done(); });
    auto suspects = rig.MakeSuspects(1);
    rig.Submit("slow");
    rig.worker->ClaimOnce();  // held for ever, and news of the suspect
    ASSERT_EQ(rig.worker->running(), 1);
    TaskId other = rig.Submit("slow");
    auto pass = [&](Duration time) {  // with all that goes on meanwhile; runs nothing
        for (Duration passed{}; passed < time; passed += 1s) {
            rig.clock.Advance(1s);
            rig.worker->RenewOnce();
            rig.worker->ClaimOnce();
        }
    };
    pass(29s);
    EXPECT_EQ(rig.StateOf(other), State::kOpen) << "waits for an idle moment";
    pass(1s);
    EXPECT_EQ(rig.StateOf(other), State::kInProgress) << "the lease is 30 s: enough";
    EXPECT_EQ(rig.StateOf(suspects.front()), State::kOpen);
    EXPECT_EQ(rig.worker->running(), 2);
}

TEST(Suspects, ATryThatFailsIsRepeatedAfterAPauseThatGrows) {
    SuspectRig rig;
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Handle("slow", [](Context&, std::string_view) { return Done(); });
    rig.MakeSuspects(1);
    rig.options.slots = 1'000;
    rig.Make();
    rig.Submit("slow");
    // Which seconds of the next minutes take new work, while the first task runs on?
    std::string taken;
    int held = 0;
    for (int second = 0; second < 270; ++second) {
        rig.worker->ClaimOnce();
        taken += rig.worker->running() > held ? '+' : '.';
        held = rig.worker->running();
        rig.Submit("slow");
        rig.clock.Advance(1s);
        rig.worker->RenewOnce();
    }
    std::string waits(29, '.');
    EXPECT_EQ(
        taken,
        "+" + waits + std::string(31, '+') + waits + std::string(61, '+') + waits +
            std::string(90, '+')
    );
}

TEST(Suspects, RunAmongAlwaysNewShortWork) {
    SuspectRig rig;
    int most_beside_suspect = 0;
    rig.Handle("t", [&](Context&, std::string_view) {
        most_beside_suspect = std::max(most_beside_suspect, rig.worker->running());
        return Done();
    });
    rig.Handle("short", [](Context&, std::string_view) { return Done(); });
    auto suspects = rig.MakeSuspects(2);
    for (int i = 0; i < 60; ++i) {
        for (int k = 0; k < 4; ++k) rig.Submit("short");
        rig.worker->ClaimOnce();
        rig.worker->RunOneAttempt();
        rig.worker->SettleOnce();
        rig.clock.Advance(100ms);
        rig.worker->RenewOnce();
    }
    for (TaskId id : suspects) EXPECT_EQ(rig.StateOf(id), State::kComplete);
    EXPECT_EQ(most_beside_suspect, 1);
    EXPECT_GT(rig.metrics.completed, 20u) << "the others went on";
}

TEST(Suspects, AnAttemptWhoseLeaseIsLostIsNotWaitedFor) {
    SuspectRig rig;
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Handle("slow", [](Context&, std::string_view) { return Done(); });
    auto suspects = rig.MakeSuspects(1);
    rig.Submit("slow");
    rig.worker->ClaimOnce();
    ASSERT_EQ(rig.worker->running(), 1);
    rig.clock.Advance(31s);  // nobody renewed: what it holds is not its own any more
    rig.worker->WatchOnce();
    rig.worker->ClaimOnce();  // a new session
    rig.worker->ClaimOnce();
    EXPECT_EQ(rig.StateOf(suspects.front()), State::kInProgress);
}

TEST(Suspects, OneThatSomebodyElseTookLeadsBackToPolling) {
    SuspectRig rig;
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    auto suspects = rig.MakeSuspects(1);
    rig.worker->ClaimOnce();  // nothing but news of the suspect
    ASSERT_EQ(rig.worker->running(), 0);
    store::NewSession other;
    other.id = SessionId(1, 1);
    other.hostname = "there";
    other.lease = 30s;
    rig.memory.OpenSession(other);
    auto claimed = rig.memory.Claim(
        {.session = other.id, .limit = 1, .queues = {}, .types = {"t"}, .suspect = true}
    );
    ASSERT_EQ(claimed.leases.size(), 1u);
    EXPECT_EQ(rig.worker->ClaimOnce(), rig.clock.Now()) << "the loop restarts at once";
    EXPECT_EQ(rig.worker->state(), WorkerState::kPolling);
    EXPECT_GT(rig.worker->ClaimOnce(), rig.clock.Now()) << "but only once";
    EXPECT_EQ(rig.worker->state(), WorkerState::kIdle);
}

}  // namespace
}  // namespace stint::engine
