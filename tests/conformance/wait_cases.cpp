// Waiting for other tasks: subtasks that a handler makes, and tasks that start after others. A wait
// and what it waits for are made in one transaction. Each of them counts once, when it is terminal;
// the last one opens the waiter, in the transaction that ends it.
#include <fmt/format.h>

#include "conformance/conformance.h"

namespace stint::conformance {
namespace {

using Kind = Settlement::Kind;

class Waits : public Conformance {
protected:
    // Subtasks of the type "child", made by the holder of `lease`, which waits for them.
    std::vector<TaskId> Block(const Lease& lease, int children, WaitOn wait = {}) {
        Settlement outcome = Outcome(lease, Kind::kBlocked);
        outcome.end = AttemptEnd::kBlocked;
        outcome.wait = std::move(wait);
        std::vector<TaskId> ids;
        for (int i = 0; i < children; ++i) {
            NewTask child{.id = store.ReserveIds(1), .type = "child", .queue = "children"};
            child.retry = RetryPolicy{.max_attempts = child_attempts_};
            ids.push_back(child.id);
            outcome.children.push_back(child);
        }
        SettleReply reply = Settle(outcome);
        EXPECT_EQ(reply.kind, SettleReply::Kind::kAccepted) << reply.message;
        return ids;
    }
    Lease ClaimChild() { return ClaimOne({.queues = {"children"}, .types = {"child"}}); }
    Lease ClaimParent() { return ClaimOne({.queues = {"default"}, .types = {"t"}}); }
    static NewTask Keyed(const std::string& key) {
        NewTask task{.type = "t"};
        task.order_key = key;
        return task;
    }
    void EndChild(Kind kind) { SettleAs(ClaimChild(), kind); }
    std::vector<std::optional<State>> Ends(TaskId task) {
        std::vector<std::optional<State>> ends;
        for (const WaitMember& member : store.Waited(task)) ends.push_back(member.ended);
        return ends;
    }

    int child_attempts_ = 1;
};
INSTANTIATE_TEST_SUITE_P(Store, Waits, testing::ValuesIn(Backends()), &BackendName);

TEST_P(Waits, TheParentResumesWhenTheLastSubtaskIsTerminal) {
    Lease lease = MakeClaimed();
    std::vector<TaskId> children = Block(lease, 3);
    TaskRecord parent = Get(lease.task);
    EXPECT_EQ(parent.state, State::kBlocked);
    EXPECT_EQ(parent.waiting_for, 3);
    EXPECT_EQ(parent.attempt, 0) << "waiting costs no attempt";
    EXPECT_FALSE(parent.session.valid());
    for (TaskId child : children) EXPECT_EQ(Get(child).parent, lease.task);
    EndChild(Kind::kComplete);
    EndChild(Kind::kComplete);
    EXPECT_EQ(StateOf(lease.task), State::kBlocked);
    EXPECT_EQ(Get(lease.task).waiting_for, 1);
    EndChild(Kind::kComplete);
    EXPECT_EQ(StateOf(lease.task), State::kOpen);
    Lease resumed = ClaimParent();
    EXPECT_EQ(resumed.task, lease.task);
    EXPECT_EQ(resumed.stage, Stage::kResume);
    EXPECT_EQ(resumed.attempt, 1);
    EXPECT_GT(resumed.claim_no, lease.claim_no);
    std::vector<WaitMember> members = store.Waited(lease.task);
    ASSERT_THAT(members, SizeIs(3));
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(members[i].task, children[i]);
        EXPECT_EQ(members[i].ended, State::kComplete);
    }
    AuditEntry last = AuditOf(lease.task).at(2);
    EXPECT_EQ(last.event, Event::kBlock);
    EXPECT_EQ(AuditOf(lease.task).at(3).event, Event::kUnblock);
}

TEST_P(Waits, AFailureIsToldAfterAllAreTerminal) {
    Lease lease = MakeClaimed();
    Block(lease, 2);
    EndChild(Kind::kDead);
    EXPECT_EQ(StateOf(lease.task), State::kBlocked);
    EndChild(Kind::kComplete);
    Lease resumed = ClaimParent();
    EXPECT_EQ(resumed.stage, Stage::kError);
    EXPECT_THAT(Ends(lease.task), UnorderedElementsAre(State::kDead, State::kComplete));
}

TEST_P(Waits, FailFastEndsTheWaitAtTheFirstFailure) {
    Lease lease = MakeClaimed();
    std::vector<TaskId> children = Block(lease, 3, {.on_failure = OnFailure::kFailFast});
    EndChild(Kind::kComplete);
    EXPECT_EQ(StateOf(lease.task), State::kBlocked);
    EndChild(Kind::kDead);
    EXPECT_EQ(ClaimParent().stage, Stage::kError);
    EXPECT_EQ(StateOf(children[2]), State::kOpen) << "what is left goes on";
    // It ends later, and changes nothing any more.
    EndChild(Kind::kComplete);
    EXPECT_EQ(StateOf(lease.task), State::kInProgress);
}

TEST_P(Waits, CancelRestCancelsWhatIsLeft) {
    Lease lease = MakeClaimed();
    std::vector<TaskId> children = Block(lease, 3, {.on_failure = OnFailure::kCancelRest});
    Lease running = ClaimChild();
    EndChild(Kind::kDead);
    EXPECT_EQ(StateOf(lease.task), State::kOpen);
    EXPECT_TRUE(Get(running.task).cancel_requested);
    EXPECT_EQ(StateOf(children[2]), State::kCancelled);
}

TEST_P(Waits, AnyIsOverWithTheFirstSuccess) {
    Lease lease = MakeClaimed();
    Block(lease, 3, {.any = true});
    EndChild(Kind::kDead);
    EXPECT_EQ(StateOf(lease.task), State::kBlocked);
    EndChild(Kind::kComplete);
    EXPECT_EQ(StateOf(lease.task), State::kOpen);
}

TEST_P(Waits, ARetriedSubtaskIsWaitedForUntilItIsTerminal) {
    child_attempts_ = 2;
    Lease lease = MakeClaimed();
    Block(lease, 1);
    SettleAs(ClaimChild(), Kind::kRetry, 1min);
    EXPECT_EQ(StateOf(lease.task), State::kBlocked);
    Advance(2min);
    EndChild(Kind::kComplete);
    EXPECT_EQ(ClaimParent().stage, Stage::kResume);
}

TEST_P(Waits, ASubtaskCountsOnceHoweverOftenItEnds) {
    Lease lease = MakeClaimed();
    std::vector<TaskId> children = Block(lease, 2);
    Lease dead = ClaimChild();
    SettleAs(dead, Kind::kDead);
    ASSERT_EQ(Retry(dead.task).kind, RetryReply::Kind::kRequeued);
    for (const Lease& again : ClaimMany(2, {.queues = {"children"}, .types = {"child"}})) {
        if (again.task == dead.task) Complete(again);
    }
    EXPECT_EQ(Get(lease.task).waiting_for, 1);
    EXPECT_EQ(StateOf(lease.task), State::kBlocked);
}

TEST_P(Waits, ARefusedSubtaskRefusesTheWhole) {
    store.SetQueue({.name = "children", .cap = 2}, "ann");
    Lease lease = MakeClaimed();
    Settlement outcome = Outcome(lease, Kind::kBlocked);
    for (int i = 0; i < 3; ++i) {
        outcome.children.push_back({.id = store.ReserveIds(1), .type = "child", .queue = "children"}
        );
    }
    SettleReply reply = Settle(outcome);
    EXPECT_EQ(reply.kind, SettleReply::Kind::kRefused);
    EXPECT_THAT(reply.message, HasSubstr("full"));
    EXPECT_EQ(StateOf(lease.task), State::kInProgress);
    for (const NewTask& child : outcome.children) {
        EXPECT_EQ(store.Get(child.id), std::nullopt) << "all or nothing";
    }
    Complete(lease);
}

TEST_P(Waits, NothingToWaitForResumesAtOnce) {
    Lease lease = MakeClaimed();
    Block(lease, 0);
    EXPECT_EQ(ClaimParent().stage, Stage::kResume);
}

TEST_P(Waits, ATaskStartsAfterThoseItNames) {
    std::vector<TaskId> first = MakeMany(2);
    NewTask task{.type = "t"};
    task.after = WaitOn{.on = first};
    SubmitReply reply = store.Submit({&task, 1}).at(0);
    ASSERT_TRUE(reply.accepted()) << reply.message;
    EXPECT_FALSE(reply.due_now);
    EXPECT_EQ(StateOf(reply.id), State::kBlocked);
    std::vector<Lease> leases = ClaimMany(10);
    EXPECT_THAT(leases, SizeIs(2));
    for (const Lease& lease : leases) Complete(lease);
    Lease lease = ClaimOne();
    EXPECT_EQ(lease.task, reply.id);
    EXPECT_EQ(lease.stage, Stage::kStart);
}

TEST_P(Waits, ATaskAfterFinishedOnesStartsAtOnce) {
    Lease done = MakeClaimed();
    Complete(done);
    NewTask task{.type = "t"};
    task.after = WaitOn{.on = {done.task}};
    SubmitReply reply = store.Submit({&task, 1}).at(0);
    EXPECT_TRUE(reply.due_now);
    EXPECT_EQ(StateOf(reply.id), State::kOpen);
}

TEST_P(Waits, ATaskAfterAFailedOneIsCancelledUnlessItMayRun) {
    TaskId gone = Make();
    NewTask strict{.type = "t"}, lenient{.type = "t"};
    strict.after = WaitOn{.on = {gone}};
    lenient.after = WaitOn{.on = {gone}, .need_success = false};
    TaskId waits = store.Submit({&strict, 1}).at(0).id;
    TaskId runs = store.Submit({&lenient, 1}).at(0).id;
    Cancel(gone);
    EXPECT_EQ(StateOf(waits), State::kCancelled);
    EXPECT_THAT(Get(waits).reason, HasSubstr(gone.ToString()));
    EXPECT_EQ(StateOf(runs), State::kOpen);
    // And of one that had failed before.
    TaskId late = store.Submit({&strict, 1}).at(0).id;
    EXPECT_EQ(StateOf(late), State::kCancelled);
}

TEST_P(Waits, ABatchMayNameItsOwnInAnyOrder) {
    TaskId first = store.ReserveIds(3);
    auto id = [&](int i) { return TaskId(first.value() + i); };
    std::vector<NewTask> batch(3, NewTask{.type = "t"});
    for (int i = 0; i < 3; ++i) batch[static_cast<std::size_t>(i)].id = id(i);
    batch[0].after = WaitOn{.on = {id(1), id(2)}};
    batch[1].after = WaitOn{.on = {id(2)}};
    for (const SubmitReply& reply : store.Submit(batch)) EXPECT_TRUE(reply.accepted());
    for (int i : {2, 1, 0}) {
        Lease lease = ClaimOne();
        EXPECT_EQ(lease.task, id(i));
        EXPECT_THAT(Claim().leases, IsEmpty());
        Complete(lease);
    }
}

TEST_P(Waits, AnUnknownDependencyIsRefusedByName) {
    NewTask task{.type = "t"};
    task.after = WaitOn{.on = {TaskId(987'654'321)}};
    SubmitReply reply = store.Submit({&task, 1}).at(0);
    EXPECT_EQ(reply.kind, SubmitReply::Kind::kInvalid);
    EXPECT_THAT(reply.message, HasSubstr("987654321"));
}

TEST_P(Waits, ACancelTakesTheDescendantsWithIt) {
    Lease lease = MakeClaimed();
    std::vector<TaskId> children = Block(lease, 3);
    Lease child = ClaimChild();
    EndChild(Kind::kComplete);
    CancelReply reply = store.Cancel({&lease.task, 1}, "ann", "no longer wanted").at(0);
    EXPECT_EQ(reply.kind, CancelReply::Kind::kCancelled);
    EXPECT_EQ(reply.descendants, 2);
    EXPECT_EQ(StateOf(lease.task), State::kCancelled);
    EXPECT_TRUE(Get(child.task).cancel_requested);
}

TEST_P(Waits, ACancelOfARunningParentKeepsItFromMakingSubtasks) {
    Lease lease = MakeClaimed();
    Cancel(lease.task);
    Settlement outcome = Outcome(lease, Kind::kBlocked);
    outcome.children.push_back({.id = store.ReserveIds(1), .type = "child", .queue = "children"});
    EXPECT_EQ(Settle(outcome).state, State::kCancelled);
    EXPECT_EQ(store.Get(outcome.children[0].id), std::nullopt);
}

TEST_P(Waits, ACancelOfASubtaskIsAFailureForItsParent) {
    Lease lease = MakeClaimed();
    std::vector<TaskId> children = Block(lease, 2);
    Cancel(children[0]);
    EndChild(Kind::kComplete);
    EXPECT_EQ(ClaimParent().stage, Stage::kError);
}

TEST_P(Waits, ASecondWaitTakesThePlaceOfTheFirst) {
    Lease lease = MakeClaimed();
    Block(lease, 2);
    EndChild(Kind::kComplete);
    EndChild(Kind::kDead);
    Lease again = ClaimParent();
    EXPECT_EQ(again.stage, Stage::kError);
    std::vector<TaskId> second = Block(again, 1);
    EXPECT_EQ(Get(lease.task).waiting_for, 1);
    EXPECT_THAT(store.Waited(lease.task), SizeIs(1));
    EndChild(Kind::kComplete);
    Lease third = ClaimParent();
    EXPECT_EQ(third.stage, Stage::kResume);
    EXPECT_EQ(third.attempt, 1);
    Complete(third);
    EXPECT_THAT(store.Waited(lease.task), IsEmpty());
}

TEST_P(Waits, AFailedAttemptBeginsAtTheSameStageAgain) {
    Lease lease = MakeClaimed();
    Block(lease, 1);
    EndChild(Kind::kComplete);
    SettleAs(ClaimParent(), Kind::kRetry, 1min);
    Advance(2min);
    Lease again = ClaimParent();
    EXPECT_EQ(again.stage, Stage::kResume);
    EXPECT_EQ(again.attempt, 2);
    Crash(again);
    Advance(1h);
    EXPECT_EQ(ClaimSuspect().stage, Stage::kResume);
}

TEST_P(Waits, AKeyMayStandForATaskThatWasThereBefore) {
    TaskId there = Make({.type = "u", .unique_key = "one"});
    Lease lease = ClaimOne({.types = {"u"}});
    Lease parent = MakeClaimed();
    Settlement outcome = Outcome(parent, Kind::kBlocked);
    TaskId asked = store.ReserveIds(1);
    outcome.children.push_back({.id = asked, .type = "u", .unique_key = "one"});
    ASSERT_EQ(Settle(outcome).kind, SettleReply::Kind::kAccepted);
    std::vector<WaitMember> members = store.Waited(parent.task);
    ASSERT_THAT(members, SizeIs(1));
    EXPECT_EQ(members[0].asked, asked);
    EXPECT_EQ(members[0].task, there);
    Complete(lease);
    EXPECT_EQ(ClaimParent().stage, Stage::kResume);
}

TEST_P(Waits, AWaitMayNameTasksThatAreThere) {
    Lease done = MakeClaimed({.type = "v"});
    Complete(done);
    TaskId other = Make({.type = "u"});
    Make();
    Lease lease = ClaimParent();
    Block(lease, 1, {.on = {other, done.task}});
    EXPECT_EQ(Get(lease.task).waiting_for, 2);
    EndChild(Kind::kComplete);
    EXPECT_EQ(StateOf(lease.task), State::kBlocked);
    Complete(ClaimOne({.types = {"u"}}));
    EXPECT_EQ(ClaimParent().stage, Stage::kResume);
}

TEST_P(Waits, WhoWaitsForItselfThroughOthersIsRefused) {
    Lease first = MakeClaimed({.type = "u"});
    Lease second = MakeClaimed();
    Block(second, 0, {.on = {first.task}});
    Settlement outcome = Outcome(first, Kind::kBlocked);
    outcome.wait.on = {second.task};
    SettleReply reply = Settle(outcome);
    EXPECT_EQ(reply.kind, SettleReply::Kind::kRefused);
    EXPECT_THAT(reply.message, HasSubstr("itself"));
    Complete(first);
    EXPECT_EQ(StateOf(second.task), State::kOpen);
}

// ---- order keys ----

// A task that waits keeps its turn, so that those of its key wait for what it waits for.
TEST_P(Waits, WhoWaitsForItselfThroughAnOrderKeyIsRefusedAndTheChainNamed) {
    Lease first = MakeClaimed(Keyed("k"));
    std::vector<TaskId> children = Block(first, 1);
    Make(Keyed("k"));
    Lease child = ClaimChild();
    Settlement outcome = Outcome(child, Kind::kBlocked);
    NewTask below = Keyed("k");
    below.id = store.ReserveIds(1);
    outcome.children = {below};
    SettleReply reply = Settle(outcome);
    EXPECT_EQ(reply.kind, SettleReply::Kind::kRefused);
    EXPECT_THAT(
        reply.message,
        HasSubstr(fmt::format(
            "task {0} waits for task {1}, task {1} comes after task {2} in the order of key \"k\", "
            "task {2} waits for task {0}.",
            child.task.value(),
            below.id.value(),
            first.task.value()
        ))
    );
    EXPECT_EQ(store.Get(below.id), std::nullopt);
    EXPECT_EQ(StateOf(child.task), State::kInProgress);
    // Of another key it may.
    outcome.children[0].order_key = "other";
    EXPECT_EQ(Settle(outcome).kind, SettleReply::Kind::kAccepted);
    Complete(ClaimOne());
    Complete(ClaimChild());
    EXPECT_EQ(ClaimParent().task, first.task);
}

TEST_P(Waits, WhoWaitsForOneBehindATaskThatStartsAfterItIsRefused) {
    Lease first = MakeClaimed({.type = "u"});
    NewTask next = Keyed("k");
    next.after = WaitOn{.on = {first.task}};
    TaskId blocked = Make(next);
    TaskId behind = Make(Keyed("k"));
    Settlement outcome = Outcome(first, Kind::kBlocked);
    outcome.wait.on = {behind};
    SettleReply reply = Settle(outcome);
    EXPECT_EQ(reply.kind, SettleReply::Kind::kRefused);
    EXPECT_THAT(reply.message, HasSubstr("comes after task " + blocked.ToString()));
    Complete(first);
    Lease second = ClaimOne();
    EXPECT_EQ(second.task, blocked);
    Complete(second);
    EXPECT_EQ(ClaimOne().task, behind);
}

TEST_P(Waits, ASubtaskThatStartsAfterWhoWaitsForItsParentIsRefused) {
    Lease first = MakeClaimed({.type = "u"});
    Lease second = MakeClaimed();
    Block(second, 0, {.on = {first.task}});
    Settlement outcome = Outcome(first, Kind::kBlocked);
    NewTask child{.id = store.ReserveIds(1), .type = "child", .queue = "children"};
    child.after = WaitOn{.on = {second.task}};
    outcome.children = {child};
    SettleReply reply = Settle(outcome);
    EXPECT_EQ(reply.kind, SettleReply::Kind::kRefused);
    EXPECT_THAT(reply.message, HasSubstr("wait for itself"));
    EXPECT_EQ(store.Get(child.id), std::nullopt);
}

TEST_P(Waits, AWaitThatIsOverIsNoReasonToRefuseAnother) {
    Lease parent = MakeClaimed();
    Block(parent, 2, {.on_failure = OnFailure::kFailFast});
    EndChild(Kind::kDead);
    ClaimParent();
    Lease child = ClaimChild();
    Settlement outcome = Outcome(child, Kind::kBlocked);
    outcome.wait.on = {parent.task};
    SettleReply reply = Settle(outcome);
    EXPECT_EQ(reply.kind, SettleReply::Kind::kAccepted) << reply.message;
}

TEST_P(Waits, SubtasksInALongLineOfTheirOwnAreWaitedFor) {
    Lease parent = MakeClaimed();
    for (int i = 0; i < 300; ++i) Make(Keyed("k"));
    Settlement outcome = Outcome(parent, Kind::kBlocked);
    for (int i = 0; i < 300; ++i) {
        outcome.children.push_back(Keyed("k"));
        outcome.children.back().id = store.ReserveIds(1);
    }
    SettleReply reply = Settle(outcome);
    EXPECT_EQ(reply.kind, SettleReply::Kind::kAccepted) << reply.message;
    EXPECT_EQ(Get(parent.task).waiting_for, 300);
}

TEST_P(Waits, OneTaskThatTwoSubtasksStandForCountsForBoth) {
    Lease parent = MakeClaimed();
    Settlement outcome = Outcome(parent, Kind::kBlocked);
    for (int i = 0; i < 3; ++i) {
        NewTask child{.id = store.ReserveIds(1), .type = "child", .queue = "children"};
        if (i != 1) child.unique_key = "one";
        outcome.children.push_back(child);
    }
    ASSERT_EQ(Settle(outcome).kind, SettleReply::Kind::kAccepted);
    EXPECT_EQ(Get(parent.task).waiting_for, 3);
    EndChild(Kind::kComplete);
    EXPECT_EQ(Get(parent.task).waiting_for, 1);
    EndChild(Kind::kComplete);
    EXPECT_EQ(ClaimParent().stage, Stage::kResume);
}

// ---- batches ----

TEST_P(Waits, ACycleInABatchIsRefusedAndNamed) {
    TaskId first = store.ReserveIds(3);
    auto id = [&](int i) { return TaskId(first.value() + i); };
    std::vector<NewTask> batch(3, NewTask{.type = "t"});
    for (int i = 0; i < 3; ++i) batch[static_cast<std::size_t>(i)].id = id(i);
    batch[0].after = WaitOn{.on = {id(1)}};
    batch[1].after = WaitOn{.on = {id(0)}};
    batch[2].after = WaitOn{.on = {id(0)}};
    std::vector<SubmitReply> replies = store.Submit(batch);
    EXPECT_EQ(replies[0].kind, SubmitReply::Kind::kInvalid);
    EXPECT_THAT(
        replies[0].message,
        HasSubstr(id(0).ToString() + " -> " + id(1).ToString() + " -> " + id(0).ToString())
    );
    EXPECT_EQ(replies[1].kind, SubmitReply::Kind::kInvalid);
    EXPECT_THAT(replies[2].message, HasSubstr("which was refused"));
    EXPECT_THAT(ListAll(), IsEmpty());
}

TEST_P(Waits, WhoWaitsForARefusedTaskIsRefused) {
    store.SetQueue({.name = "full", .cap = 0}, "ann");
    TaskId first = store.ReserveIds(2);
    std::vector<NewTask> batch = {
        {.id = TaskId(first.value() + 1), .type = "t"},
        {.id = first, .type = "t", .queue = "full"}};
    batch[0].after = WaitOn{.on = {first}};
    std::vector<SubmitReply> replies = store.Submit(batch);
    EXPECT_EQ(replies[1].kind, SubmitReply::Kind::kQueueFull);
    EXPECT_EQ(replies[0].kind, SubmitReply::Kind::kInvalid);
    EXPECT_THAT(replies[0].message, HasSubstr("full"));
}

TEST_P(Waits, AChainOfCancelsRunsThroughThoseThatNeedSuccess) {
    TaskId first = Make();
    NewTask next{.type = "t"};
    std::vector<TaskId> chain = {first};
    for (int i = 0; i < 4; ++i) {
        next.after = WaitOn{.on = {chain.back()}};
        chain.push_back(store.Submit({&next, 1}).at(0).id);
    }
    Cancel(first);
    for (TaskId task : chain) EXPECT_EQ(StateOf(task), State::kCancelled);
    EXPECT_THAT(Get(chain.back()).reason, HasSubstr(chain[3].ToString()));
}

TEST_P(Waits, AChainMayBeLongerThanAStackIsDeep) {
    constexpr int kLinks = 2000;
    TaskId first = Make();
    std::vector<NewTask> links(kLinks, NewTask{.type = "t"});
    TaskId before = first, reserved = store.ReserveIds(kLinks);
    for (int i = 0; i < kLinks; ++i) {
        NewTask& link = links[static_cast<std::size_t>(i)];
        link.id = TaskId(reserved.value() + i);
        link.after = WaitOn{.on = {before}};
        before = link.id;
    }
    for (const SubmitReply& reply : store.SubmitAll(links)) ASSERT_TRUE(reply.accepted());
    Cancel(first);
    EXPECT_EQ(StateOf(links.front().id), State::kCancelled);
    EXPECT_EQ(StateOf(before), State::kCancelled);
}

TEST_P(Waits, TheTasksOfOtherTenantsAreNotThere) {
    TaskId other = Make({.tenant = TenantId(7)});
    NewTask task{.type = "t", .after = WaitOn{.on = {other}}};
    SubmitReply reply = store.Submit({&task, 1}).at(0);
    EXPECT_EQ(reply.kind, SubmitReply::Kind::kInvalid);
    EXPECT_THAT(reply.message, HasSubstr("not there"));

    std::vector<NewTask> both(2, NewTask{.type = "t"});
    TaskId reserved = store.ReserveIds(2);
    both[0].id = reserved;
    both[0].tenant = TenantId(7);
    both[1].id = TaskId(reserved.value() + 1);
    both[1].after = WaitOn{.on = {reserved}};
    EXPECT_EQ(store.Submit(both).at(1).kind, SubmitReply::Kind::kInvalid);

    Make({.type = "u"});
    Settlement outcome = Outcome(ClaimOne({.types = {"u"}}), Kind::kBlocked);
    outcome.wait.on = {other};
    EXPECT_EQ(Settle(outcome).kind, SettleReply::Kind::kRefused);
}

TEST_P(Waits, AFutureTaskThatWaitedIsNotDueEarly) {
    TaskId first = Make();
    NewTask later{.type = "u", .delay = 1h};
    later.after = WaitOn{.on = {first}};
    TaskId task = store.Submit({&later, 1}).at(0).id;
    Complete(ClaimOne({.types = {"t"}}));
    EXPECT_EQ(StateOf(task), State::kOpen);
    EXPECT_THAT(Claim().leases, IsEmpty());
    Advance(2h);
    EXPECT_EQ(ClaimOne().task, task);
}

TEST_P(Waits, OneTaskMayHoldUpMany) {
    TaskId first = Make();
    std::vector<NewTask> batch(50, NewTask{.type = "u"});
    for (NewTask& task : batch) task.after = WaitOn{.on = {first}};
    for (const SubmitReply& reply : store.Submit(batch)) EXPECT_FALSE(reply.due_now);
    EXPECT_THAT(ClaimMany(100, {.types = {"u"}}), IsEmpty());
    Complete(ClaimOne({.types = {"t"}}));
    EXPECT_THAT(ClaimMany(100, {.types = {"u"}}), SizeIs(50));
}

TEST_P(Waits, ABackgroundSubtaskCountsWhenItIsFinishedFromOutside) {
    Lease lease = MakeClaimed();
    Block(lease, 1);
    Lease child = ClaimChild();
    SettleAs(child, Kind::kBackground, 1h);
    EXPECT_EQ(StateOf(lease.task), State::kBlocked);
    ASSERT_TRUE(store.FinishBackground({.task = child.task, .token = child.token, .actor = "ann"}));
    EXPECT_EQ(ClaimParent().stage, Stage::kResume);
}

TEST_P(Waits, ASubtaskThatCrashesTooOftenCounts) {
    Lease lease = MakeClaimed();
    Block(lease, 1);
    Crash(ClaimChild());
    EXPECT_EQ(StateOf(lease.task), State::kOpen) << "one attempt was all it had";
    EXPECT_EQ(ClaimParent().stage, Stage::kError);
}

TEST_P(Waits, ASubtaskThatWasNotStartedInTimeCounts) {
    Lease lease = MakeClaimed();
    Settlement outcome = Outcome(lease, Kind::kBlocked);
    NewTask child{.id = store.ReserveIds(1), .type = "child", .queue = "children"};
    child.start_by = store.Now() + 1min;
    outcome.children = {child};
    ASSERT_EQ(Settle(outcome).kind, SettleReply::Kind::kAccepted);
    Advance(2min);
    Housekeep();
    EXPECT_EQ(StateOf(child.id), State::kDead);
    EXPECT_EQ(ClaimParent().stage, Stage::kError);
}

TEST_P(Waits, TheOutputsOfSubtasksStayAsLongAsTheirParent) {
    store.SetQueue({.name = "children", .keep_complete = 1h}, "ann");
    Lease lease = MakeClaimed();
    std::vector<TaskId> children = Block(lease, 2);
    EndChild(Kind::kComplete);
    for (int day = 0; day < 4; ++day) {
        Advance(24h);
        Housekeep();
    }
    EXPECT_THAT(store.Finished(children), SizeIs(1));
}

TEST_P(Waits, AllOrNoneStoresNothingWhenOneIsRefused) {
    store.SetQueue({.name = "full", .cap = 0}, "ann");
    TaskId first = store.ReserveIds(2);
    std::vector<NewTask> batch = {
        {.id = first, .type = "t", .idempotency_key = "k"},
        {.id = TaskId(first.value() + 1), .type = "t", .queue = "full"}};
    std::vector<SubmitReply> replies = store.SubmitAll(batch);
    EXPECT_FALSE(replies[0].accepted());
    EXPECT_THAT(replies[0].message, HasSubstr("task 2 of the batch was refused"));
    EXPECT_EQ(replies[1].kind, SubmitReply::Kind::kQueueFull);
    EXPECT_THAT(ListAll(), IsEmpty());
    EXPECT_EQ(store.FindByIdempotencyKey(kDefaultTenant, "k"), std::nullopt);
    batch[1].queue = "roomy";
    for (const SubmitReply& reply : store.SubmitAll(batch)) EXPECT_TRUE(reply.accepted());
    EXPECT_THAT(ListAll(), SizeIs(2));
}

TEST_P(Waits, AllOrNoneRefusesAnInvalidOneToo) {
    std::vector<NewTask> batch = {{.type = "t"}, {.type = "t", .input = "not json"}};
    for (const SubmitReply& reply : store.SubmitAll(batch)) EXPECT_FALSE(reply.accepted());
    EXPECT_THAT(ListAll(), IsEmpty());
}

TEST_P(Waits, AnOperatorsRetryBeginsAnew) {
    Lease lease = MakeClaimed();
    Block(lease, 1);
    EndChild(Kind::kDead);
    SettleAs(ClaimParent(), Kind::kDead);
    Retry(lease.task);
    EXPECT_EQ(ClaimParent().stage, Stage::kStart);
}

TEST_P(Waits, WhoWasCancelledWhileItWaitedWaitsForNothing) {
    TaskId first = Make();
    TaskId waiter = Make({.type = "u", .after = WaitOn{.on = {first}}});
    EXPECT_EQ(store.Get(waiter)->waiting_for, 1);
    Cancel(waiter);
    EXPECT_EQ(store.Get(waiter)->waiting_for, 0);
    Retry(waiter);
    EXPECT_EQ(store.Get(waiter)->waiting_for, 0);
}

}  // namespace
}  // namespace stint::conformance
