// Flows: steps are recorded once, and only by who holds the task; signals are kept, taken once and
// wake who sleeps for them, also when they come at the moment it lies down.
#include "conformance/conformance.h"
#include "store/flows.h"

namespace stint::conformance {
namespace {

using Kind = Settlement::Kind;
using Recorded = FlowReply::Kind;
using Signalled = SignalReply::Kind;

class Flows : public Conformance {
protected:
    FlowStore& flows() { return store.Flows(); }

    Lease Begun(const NewTask& task = {}) {
        Lease lease = MakeClaimed(task);
        EXPECT_TRUE(flows().Begin(lease.task, lease.token).has_value());
        return lease;
    }
    static FlowWrite Write(
        const Lease& lease, const std::string& name, StepKind kind, std::string result = {}
    ) {
        FlowWrite write;
        write.task = lease.task;
        write.token = lease.token;
        write.step.name = name;
        write.step.kind = kind;
        write.step.state = result.empty() ? StepState::kOpen : StepState::kDone;
        write.step.result = std::move(result);
        return write;
    }
    FlowStep Record(const FlowWrite& write) {
        FlowReply reply = flows().Record(write);
        EXPECT_EQ(reply.kind, Recorded::kRecorded) << reply.message;
        return reply.step;
    }
    FlowStep Await(
        const Lease& lease, const std::string& name, std::optional<Duration> patience = {}
    ) {
        FlowWrite write = Write(lease, name, StepKind::kSignal);
        write.step.about = name;
        write.length = patience;
        FlowReply reply = flows().AwaitSignal(write);
        EXPECT_EQ(reply.kind, Recorded::kRecorded) << reply.message;
        return reply.step;
    }
    SignalReply Signal(
        TaskId task, const std::string& name, const std::string& payload = "1", std::string id = {}
    ) {
        return flows().Signal({task, name, payload, std::move(id), "tester"});
    }
    std::vector<FlowStep> StepsOf(TaskId task) { return flows().Get(task).value().steps; }
};
INSTANTIATE_TEST_SUITE_P(Store, Flows, testing::ValuesIn(Backends()), &BackendName);

// ---- steps -------------------------------------------------------------------------------------

TEST_P(Flows, StepsAreRecordedInOrderAndReadBackByTheNextAttempt) {
    Lease lease = Begun();
    FlowWrite run = Write(lease, "a", StepKind::kRun, R"({"x":1})");
    run.step.hash = "h";
    FlowStep first = Record(run);
    EXPECT_EQ(first.no, 1);
    FlowWrite sleep = Write(lease, "b", StepKind::kSleep);
    sleep.length = 48h;
    FlowStep second = Record(sleep);
    EXPECT_EQ(second.no, 2);
    EXPECT_TRUE(Near(*second.due_at, store.Now() + 48h));
    SettleAs(lease, Kind::kSnooze, 48h);

    Advance(49h);
    Lease next = ClaimOne();
    std::optional<FlowHistory> history = flows().Begin(next.task, next.token);
    ASSERT_TRUE(history);
    ASSERT_THAT(history->steps, SizeIs(2));
    EXPECT_EQ(history->steps[0].name, "a");
    EXPECT_EQ(history->steps[0].kind, StepKind::kRun);
    EXPECT_EQ(history->steps[0].state, StepState::kDone);
    EXPECT_EQ(history->steps[0].result, R"({"x":1})");
    EXPECT_EQ(history->steps[0].hash, "h");
    EXPECT_EQ(history->steps[1].due_at, second.due_at);
    EXPECT_GE(history->now, *second.due_at);
    EXPECT_EQ(history->flow.steps, 2);
    EXPECT_EQ(next.attempt, 1) << "sleeping costs no attempt";
}

TEST_P(Flows, TheSameStepAgainIsAnsweredFromTheRecord) {
    Lease lease = Begun();
    Record(Write(lease, "a", StepKind::kRun, "1"));
    FlowStep again = Record(Write(lease, "a", StepKind::kRun, "2"));
    EXPECT_EQ(again.result, "1");
    EXPECT_EQ(again.no, 1);
    FlowWrite second = Write(lease, "a", StepKind::kRun, "2");
    second.step.occurrence = 2;
    EXPECT_EQ(Record(second).no, 2) << "the second time the code asks for the name";
    EXPECT_THAT(StepsOf(lease.task), SizeIs(2));
}

TEST_P(Flows, WhoHasLostTheTaskRecordsNothing) {
    SessionId dying = OpenSession(limits::kLeaseMax, "host-b");
    TaskId task = Make();
    Lease stale = ClaimOne({.session = dying});
    ASSERT_TRUE(flows().Begin(task, stale.token));
    Record(Write(stale, "a", StepKind::kRun, "1"));
    Crash(stale);
    Advance(1min);
    EXPECT_EQ(flows().Record(Write(stale, "b", StepKind::kRun, "\"stale\"")).kind, Recorded::kLost);
    Lease fresh = ClaimSuspect();
    ASSERT_EQ(fresh.task, task);
    EXPECT_EQ(flows().Record(Write(stale, "b", StepKind::kRun, "\"stale\"")).kind, Recorded::kLost);
    FlowWrite wait = Write(stale, "s", StepKind::kSignal);
    wait.step.about = "s";
    Signal(task, "s");
    EXPECT_EQ(flows().AwaitSignal(wait).kind, Recorded::kLost);
    EXPECT_FALSE(flows().Begin(task, stale.token));
    ASSERT_TRUE(flows().Begin(task, fresh.token));
    EXPECT_EQ(Record(Write(fresh, "b", StepKind::kRun, "\"fresh\"")).result, "\"fresh\"");
    EXPECT_THAT(StepsOf(task), SizeIs(2));
    Complete(fresh);
    EXPECT_EQ(flows().Record(Write(fresh, "c", StepKind::kRun, "1")).kind, Recorded::kLost);
}

TEST_P(Flows, ACalledTaskIsMadeWithItsStep) {
    Lease lease = Begun({.queue = "flows"});
    FlowWrite call = Write(lease, "charge", StepKind::kCall);
    call.step.about = "u";
    call.child = NewTask{.id = store.ReserveIds(1), .type = "u", .parent = lease.task};
    FlowReply reply = flows().Record(call);
    ASSERT_EQ(reply.kind, Recorded::kRecorded) << reply.message;
    EXPECT_EQ(reply.step.task, call.child->id);
    EXPECT_EQ(reply.queue, "default");
    EXPECT_TRUE(reply.due_now);
    EXPECT_EQ(Get(reply.step.task).parent, lease.task);
    EXPECT_EQ(Record(call).task, call.child->id) << "the answer was lost: the same again";
    EXPECT_EQ(Record(call).state, StepState::kOpen);

    Settlement blocked = Outcome(lease, Kind::kBlocked);
    blocked.end = AttemptEnd::kBlocked;
    blocked.wait.on = {reply.step.task};
    EXPECT_EQ(Settle(blocked).state, State::kBlocked);
    Complete(ClaimOne({.types = {"u"}}));
    Lease resumed = ClaimOne({.types = {"t"}});
    FlowWrite end = Write(resumed, "charge", StepKind::kCall, "42");
    EXPECT_EQ(Record(end).state, StepState::kDone);
    FlowStep ended = StepsOf(lease.task).at(0);
    EXPECT_EQ(ended.result, "42");
    EXPECT_EQ(ended.task, reply.step.task);
    EXPECT_EQ(ended.about, "u");
    EXPECT_TRUE(ended.ended_at.has_value());
}

TEST_P(Flows, ARefusedTaskLeavesNoStep) {
    Lease lease = Begun();
    FlowWrite call = Write(lease, "charge", StepKind::kCall);
    NewTask first{.type = "u", .unique_key = "k"};
    first.unique_policy = UniquePolicy::kError;
    Make(first);
    call.child = first;
    call.child->id = store.ReserveIds(1);
    call.child->parent = lease.task;
    FlowReply reply = flows().Record(call);
    EXPECT_EQ(reply.kind, Recorded::kRefused);
    EXPECT_FALSE(reply.message.empty());
    EXPECT_THAT(StepsOf(lease.task), IsEmpty());
}

TEST_P(Flows, AFullQueueIsToldApart) {
    store.SetQueue({.name = "small", .cap = 1}, "test");
    Lease lease = Begun();
    Make({.type = "u", .queue = "small"});
    FlowWrite call = Write(lease, "charge", StepKind::kCall);
    call.child =
        NewTask{.id = store.ReserveIds(1), .type = "u", .queue = "small", .parent = lease.task};
    FlowReply reply = flows().Record(call);
    EXPECT_EQ(reply.kind, Recorded::kFull);
    EXPECT_FALSE(reply.message.empty());
    EXPECT_THAT(StepsOf(lease.task), IsEmpty());
    Complete(ClaimOne({.queues = {"small"}}));
    EXPECT_EQ(flows().Record(call).kind, Recorded::kRecorded) << "there is room again";
}

TEST_P(Flows, OneThatIsToBeCancelledBeginsNothingNew) {
    Lease lease = Begun();
    Cancel(lease.task);
    FlowWrite call = Write(lease, "charge", StepKind::kCall);
    call.child = NewTask{.id = store.ReserveIds(1), .type = "u", .parent = lease.task};
    EXPECT_EQ(flows().Record(call).kind, Recorded::kStopping);
    EXPECT_FALSE(store.Get(call.child->id));
    EXPECT_EQ(Record(Write(lease, "done", StepKind::kRun, "1")).no, 1) << "what was done is told";
    SettleAs(lease, Kind::kSnooze, 1h);
    EXPECT_EQ(StateOf(lease.task), State::kCancelled);
}

TEST_P(Flows, LimitsAreNamed) {
    Lease lease = Begun();
    FlowReply nameless = flows().Record(Write(lease, "", StepKind::kRun, "1"));
    EXPECT_EQ(nameless.kind, Recorded::kRefused);
    EXPECT_THAT(nameless.message, HasSubstr("name"));
    std::string large = "\"" + std::string(limits::kStepResult, 'x') + "\"";
    FlowReply reply = flows().Record(Write(lease, "a", StepKind::kRun, large));
    EXPECT_EQ(reply.kind, Recorded::kRefused);
    EXPECT_THAT(reply.message, HasSubstr(std::to_string(limits::kStepResult)));
    EXPECT_EQ(Signal(lease.task, "s", "no JSON").kind, Signalled::kInvalid);
    EXPECT_EQ(Signal(lease.task, "").kind, Signalled::kInvalid);
}

// ---- signals -----------------------------------------------------------------------------------

TEST_P(Flows, ASignalThatComesEarlyIsKeptAndTakenOnce) {
    TaskId task = Make();
    EXPECT_EQ(Signal(task, "go", "1").kind, Signalled::kAccepted) << "before the flow has begun";
    EXPECT_EQ(Signal(task, "go", "2").kind, Signalled::kAccepted);
    EXPECT_EQ(Signal(task, "other", "3").kind, Signalled::kAccepted);
    Lease lease = ClaimOne();
    ASSERT_TRUE(flows().Begin(task, lease.token));
    FlowStep first = Await(lease, "go");
    EXPECT_EQ(first.state, StepState::kDone);
    EXPECT_EQ(first.result, "1");
    FlowWrite second = Write(lease, "go", StepKind::kSignal);
    second.step.about = "go";
    second.step.occurrence = 2;
    EXPECT_EQ(flows().AwaitSignal(second).step.result, "2");
    EXPECT_EQ(flows().AwaitSignal(second).step.result, "2") << "the same again";
    second.step.occurrence = 3;
    EXPECT_EQ(flows().AwaitSignal(second).step.state, StepState::kOpen);
    FlowHistory history = flows().Get(task).value();
    EXPECT_EQ(history.flow.waiting, 1);
    ASSERT_THAT(history.signals, SizeIs(3));
    EXPECT_EQ(history.signals[0].step, 1);
    EXPECT_EQ(history.signals[1].step, 2);
    EXPECT_EQ(history.signals[2].step, 0);
}

TEST_P(Flows, ASignalWakesAFlowThatSleepsForIt) {
    Lease lease = Begun({.queue = "flows"});
    EXPECT_EQ(Await(lease, "go", 24h).state, StepState::kOpen);
    SettleAs(lease, Kind::kSnooze, 24h);
    EXPECT_THAT(Claim().leases, IsEmpty());
    EXPECT_FALSE(Signal(lease.task, "other").woken);
    EXPECT_THAT(Claim().leases, IsEmpty()) << "not for another signal";
    SignalReply reply = Signal(lease.task, "go", R"({"parcel":"x"})");
    EXPECT_TRUE(reply.woken);
    EXPECT_EQ(reply.queue, "flows");
    EXPECT_FALSE(Signal(lease.task, "go", "2").woken) << "it is awake";
    Lease next = ClaimOne();
    ASSERT_TRUE(flows().Begin(next.task, next.token));
    FlowStep step = Await(next, "go", 24h);
    EXPECT_EQ(step.state, StepState::kDone);
    EXPECT_EQ(step.result, R"({"parcel":"x"})");
    std::vector<AuditEntry> audit = AuditOf(lease.task);
    auto woken = std::ranges::find(audit, Event::kEdit, &AuditEntry::event);
    ASSERT_NE(woken, audit.end());
    EXPECT_EQ(woken->actor, "tester");
    EXPECT_EQ(woken->reason, "signal \"go\"");
}

TEST_P(Flows, ASignalThatComesWhileTheFlowLiesDownIsNotSleptThrough) {
    Lease lease = Begun();
    EXPECT_EQ(Await(lease, "go", 24h).state, StepState::kOpen);
    EXPECT_FALSE(Signal(lease.task, "go").woken) << "it runs";
    SettleReply reply = Settle(Outcome(lease, Kind::kSnooze, 24h));
    EXPECT_EQ(reply.state, State::kOpen);
    EXPECT_THAT(reply.opened, testing::Contains("default"));
    Lease next = ClaimOne();
    ASSERT_TRUE(flows().Begin(next.task, next.token));
    EXPECT_EQ(Await(next, "go", 24h).state, StepState::kDone);
    SettleAs(next, Kind::kSnooze, 24h);
    EXPECT_THAT(Claim().leases, IsEmpty()) << "a later sleep is not cut short by an old signal";
}

TEST_P(Flows, WhatAFlowSleptForIsForgottenWhenItGoesOn) {
    Lease lease = Begun();
    Await(lease, "go", 24h);
    Signal(lease.task, "go");
    SettleAs(lease, Kind::kSnooze, 24h);
    Lease next = ClaimOne();
    ASSERT_TRUE(flows().Begin(next.task, next.token));
    SettleAs(next, Kind::kSnooze, 24h);  // new code: a sleep, not the signal
    EXPECT_THAT(Claim().leases, IsEmpty());
}

TEST_P(Flows, PatienceEndsByTheStoresClock) {
    Lease lease = Begun();
    FlowStep open = Await(lease, "go", 24h);
    EXPECT_TRUE(Near(*open.due_at, store.Now() + 24h));
    SettleAs(lease, Kind::kSnooze, 24h);
    Advance(25h);
    Lease next = ClaimOne();
    ASSERT_TRUE(flows().Begin(next.task, next.token));
    FlowStep late = Await(next, "go", 24h);
    EXPECT_EQ(late.state, StepState::kTimedOut);
    Signal(lease.task, "go");
    EXPECT_EQ(Await(next, "go", 24h).state, StepState::kTimedOut) << "it is recorded";
    FlowWrite second = Write(next, "go", StepKind::kSignal);
    second.step.about = "go";
    second.step.occurrence = 2;
    EXPECT_EQ(flows().AwaitSignal(second).step.state, StepState::kDone) << "the signal is kept";
}

TEST_P(Flows, ASignalWithAnIdArrivesOnce) {
    Lease lease = Begun();
    EXPECT_EQ(Signal(lease.task, "go", "1", "x").kind, Signalled::kAccepted);
    EXPECT_EQ(Signal(lease.task, "go", "1", "x").kind, Signalled::kExisting);
    EXPECT_EQ(Signal(lease.task, "go", "2", "x").kind, Signalled::kConflict);
    EXPECT_EQ(Signal(lease.task, "other", "1", "x").kind, Signalled::kConflict);
    EXPECT_EQ(flows().Get(lease.task)->flow.waiting, 1);
    Complete(lease);
    EXPECT_EQ(Signal(lease.task, "go", "1", "x").kind, Signalled::kExisting);
    EXPECT_EQ(Signal(lease.task, "go", "1", "y").kind, Signalled::kFinished);
    EXPECT_EQ(Signal(TaskId(999'999'999), "go").kind, Signalled::kNotFound);
}

TEST_P(Flows, TooManyWaitingSignalsAreRefused) {
    TaskId task = Make();
    for (int i = 0; i < limits::kFlowSignals; ++i) {
        ASSERT_EQ(Signal(task, "go").kind, Signalled::kAccepted);
    }
    SignalReply reply = Signal(task, "go");
    EXPECT_EQ(reply.kind, Signalled::kFull);
    EXPECT_THAT(reply.message, HasSubstr("1000"));
    Lease lease = ClaimOne();
    ASSERT_TRUE(flows().Begin(task, lease.token));
    Await(lease, "go");
    EXPECT_EQ(Signal(task, "go").kind, Signalled::kAccepted) << "there is room again";
}

// ---- instances ---------------------------------------------------------------------------------

TEST_P(Flows, AreListedNewestFirst) {
    std::vector<TaskId> ids;
    for (int i = 0; i < 3; ++i) ids.push_back(Begun().task);
    std::vector<FlowRecord> all = flows().List({});
    ASSERT_THAT(all, SizeIs(3));
    EXPECT_EQ(all[0].task, ids[2]);
    EXPECT_EQ(all[2].task, ids[0]);
    FlowListRequest page;
    page.before = ids[2];
    page.limit = 1;
    ASSERT_THAT(flows().List(page), SizeIs(1));
    EXPECT_EQ(flows().List(page)[0].task, ids[1]);
    FlowListRequest foreign;
    foreign.tenant = TenantId(7);
    EXPECT_THAT(flows().List(foreign), IsEmpty());
    EXPECT_FALSE(flows().Get(Make()));
}

TEST_P(Flows, AForkTakesOverWhatWasRecordedBeforeAStep) {
    Lease lease = Begun();
    Record(Write(lease, "a", StepKind::kRun, "1"));
    Signal(lease.task, "go", "2");
    Await(lease, "go");
    Record(Write(lease, "b", StepKind::kRun, "3"));
    Record(Write(lease, "c", StepKind::kRun, "4"));
    Complete(lease);
    ForkReply reply = flows().Fork({lease.task, "b", 1, NewTask{.type = "t"}});
    ASSERT_EQ(reply.kind, ForkReply::Kind::kCreated) << reply.message;
    EXPECT_EQ(reply.steps, 2);
    Lease forked = ClaimOne();
    EXPECT_EQ(forked.task, reply.task);
    std::optional<FlowHistory> history = flows().Begin(forked.task, forked.token);
    ASSERT_TRUE(history);
    ASSERT_THAT(history->steps, SizeIs(2));
    EXPECT_EQ(history->steps[0].result, "1");
    EXPECT_EQ(history->steps[1].result, "2");
    EXPECT_EQ(Record(Write(forked, "b", StepKind::kRun, "5")).no, 3);
    EXPECT_THAT(StepsOf(lease.task), SizeIs(4)) << "the original is as it was";
    ForkReply missing = flows().Fork({lease.task, "nosuch", 1, NewTask{.type = "t"}});
    EXPECT_EQ(missing.kind, ForkReply::Kind::kNotFound);
    EXPECT_THAT(missing.message, HasSubstr("nosuch"));
}

TEST_P(Flows, ARetriedFlowGoesOnFromItsRecord) {
    Lease lease = Begun();
    Record(Write(lease, "a", StepKind::kRun, "1"));
    SettleAs(lease, Kind::kDead);
    Retry(lease.task);
    Lease again = ClaimOne();
    EXPECT_THAT(flows().Begin(again.task, again.token)->steps, SizeIs(1));
}

TEST_P(Flows, RecordsGoWithTheTask) {
    store.SetQueue({.name = "short", .keep_complete = Duration(1h)}, "test");
    Lease lease = Begun({.queue = "short"});
    Record(Write(lease, "a", StepKind::kRun, "1"));
    Signal(lease.task, "go");
    Complete(lease);
    Housekeep();
    EXPECT_TRUE(flows().Get(lease.task));
    for (int i = 0; i < 6; ++i) {
        Advance(24h);
        Housekeep();
        Housekeep();
    }
    ASSERT_FALSE(store.Get(lease.task));
    EXPECT_FALSE(flows().Get(lease.task));
    EXPECT_THAT(flows().List({}), IsEmpty());
}

TEST_P(Flows, HowManyThereAreDoesNotKeepThemBeyondTheTask) {
    store.SetQueue({.name = "short", .keep_complete = Duration(1h)}, "test");
    for (int i = 0; i < 7; ++i) {
        Lease lease = Begun({.queue = "short"});
        Record(Write(lease, "a", StepKind::kRun, "1"));
        Complete(lease);
    }
    TaskId live = Begun().task;
    Advance(24h * 6);
    bool more = true;
    for (int i = 0; more && i < 50; ++i) {
        more = store.Housekeep({.limit = 2, .history = true}).more;
    }
    EXPECT_FALSE(more) << "what is kept is not looked at again and again";
    std::vector<FlowRecord> left = flows().List({});
    ASSERT_THAT(left, SizeIs(1));
    EXPECT_EQ(left[0].task, live);
}

// What a flow has read of a task is in its record; only what it may still read stays for it.
TEST_P(Flows, ALongFlowKeepsTheTasksOfItsOpenStepsAndNoOthers) {
    store.SetQueue({.name = "short", .keep_complete = Duration(1h)}, "test");
    Lease lease = Begun();
    auto call = [&](const std::string& name, TaskId parent, const std::string& key = {}) {
        FlowWrite write = Write(lease, name, StepKind::kCall);
        NewTask child{.id = store.ReserveIds(1), .type = "u", .queue = "short", .parent = parent};
        child.unique_key = key;
        write.child = child;
        return Record(write).task;
    };
    TaskId read = call("read", lease.task);
    TaskId unread = call("unread", lease.task);
    TaskId keyed = Make({.type = "u", .queue = "short", .unique_key = "k"});
    ASSERT_EQ(call("keyed", lease.task, "k"), keyed) << "a task that is not its child";
    for (int i = 0; i < 3; ++i) Complete(ClaimOne({.types = {"u"}}));
    Record(Write(lease, "read", StepKind::kCall, "1"));
    SettleAs(lease, Kind::kSnooze, 24h * 300);
    auto pass_days = [&] {
        for (int i = 0; i < 6; ++i) {
            Advance(24h);
            Housekeep();
        }
    };
    pass_days();
    EXPECT_TRUE(store.Get(unread)) << "it has not heard of its end";
    EXPECT_TRUE(store.Get(keyed)) << "nor of that";
    EXPECT_THAT(store.Finished(std::vector{unread, keyed}), SizeIs(2));
    // Then it has heard of all.
    Advance(24h * 300);
    Lease next = ClaimOne();
    ASSERT_TRUE(flows().Begin(next.task, next.token));
    Record(Write(next, "unread", StepKind::kCall, "1"));
    Record(Write(next, "keyed", StepKind::kCall, "1"));
    SettleAs(next, Kind::kSnooze, 24h * 300);
    pass_days();
    EXPECT_FALSE(store.Get(read)) << "a long life alone keeps nothing";
    EXPECT_FALSE(store.Get(unread));
    EXPECT_FALSE(store.Get(keyed));
    EXPECT_EQ(StateOf(lease.task), State::kOpen);
}

}  // namespace
}  // namespace stint::conformance
