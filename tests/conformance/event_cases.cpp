// Events. One per (tenant, source, id) however often it is published; handed out to one node at a
// time; each trigger fires once per event, in one transaction with the record of it, whoever
// processes the event and how often. What has to wait keeps the event pending, what can never be
// done is recorded.
#include "conformance/event_suite.h"

namespace stint::conformance {
namespace {

using Kind = PublishReply::Kind;
using Fired = FiringRecord::Kind;

// ---- publish -----------------------------------------------------------------------------------

EVENT_SUITE(Publishing);

TEST_P(Publishing, AnEventIsStoredAsItIs) {
    EventNo no = Happen(
        {.tenant = TenantId(7),
         .source = "scanner",
         .id = "e-1",
         .type = "file.ingested",
         .data = R"({"path":"/a","size":3})"}
    );
    EventRecord event = Event(no);
    EXPECT_EQ(event.no, no);
    EXPECT_EQ(event.tenant, TenantId(7));
    EXPECT_EQ(event.source, "scanner");
    EXPECT_EQ(event.id, "e-1");
    EXPECT_EQ(event.type, "file.ingested");
    EXPECT_EQ(event.data, R"({"path":"/a","size":3})");
    EXPECT_TRUE(Near(event.time, store.Now()));
    EXPECT_TRUE(Near(event.published_at, store.Now()));
    EXPECT_EQ(event.state, EventState::kPending);
    EXPECT_EQ(event.depth, 0);
    EXPECT_EQ(event.processed_at, std::nullopt);
    EXPECT_EQ(events.GetEvent(EventNo(no.value() + 1'000)), std::nullopt);
}

TEST_P(Publishing, TheSameIdIsTheSameEvent) {
    EventNo no = Happen({.source = "s", .id = "1", .data = R"({"a":1,"b":2})"});
    PublishReply again = Publish({.source = "s", .id = "1", .data = R"({ "b":2, "a":1 })"});
    EXPECT_EQ(again.kind, Kind::kExisting);
    EXPECT_EQ(again.no, no);
    EXPECT_THAT(events.ListEvents({}), SizeIs(1));
}

TEST_P(Publishing, AnIdBelongsToItsSourceAndTenant) {
    EventNo first = Happen({.source = "s", .id = "1"});
    EventNo second = Happen({.source = "other", .id = "1"});
    EventNo third = Happen({.tenant = TenantId(2), .source = "s", .id = "1"});
    EXPECT_NE(first, second);
    EXPECT_NE(first, third);
}

TEST_P(Publishing, WithoutAnIdEachIsAnEvent) {
    EXPECT_NE(Happen({.source = "s"}), Happen({.source = "s"}));
    EXPECT_THAT(events.ListEvents({}), SizeIs(2));
}

TEST_P(Publishing, TheSameIdThatSaysSomethingElseIsAConflict) {
    EventNo no = Happen({.source = "s", .id = "1", .data = "1"});
    PublishReply other = Publish({.source = "s", .id = "1", .data = "2"});
    EXPECT_EQ(other.kind, Kind::kConflict);
    EXPECT_EQ(other.no, no);
    EXPECT_THAT(other.message, HasSubstr("use a new id"));
    EXPECT_EQ(Event(no).data, "1");
}

TEST_P(Publishing, ABatchAnswersEachInOrder) {
    std::vector<NewEvent> batch = {
        {.source = "s", .id = "1", .type = "a"},
        {.type = "not a name"},
        {.source = "s", .id = "1", .type = "a"},
        {.source = "s", .id = "1", .type = "b"},
        {.type = "stint.mine"},
        {.type = "a", .data = "{"}};
    std::vector<PublishReply> replies = events.Publish(batch);
    ASSERT_THAT(replies, SizeIs(6));
    EXPECT_EQ(replies[0].kind, Kind::kAccepted);
    EXPECT_EQ(replies[1].kind, Kind::kInvalid);
    EXPECT_THAT(replies[1].message, HasSubstr("type"));
    EXPECT_EQ(replies[2].kind, Kind::kExisting);
    EXPECT_EQ(replies[2].no, replies[0].no);
    EXPECT_EQ(replies[3].kind, Kind::kConflict);
    EXPECT_THAT(replies[4].message, HasSubstr("the engine's own"));
    EXPECT_THAT(replies[5].message, HasSubstr("data is not JSON"));
    EXPECT_THAT(events.ListEvents({}), SizeIs(1));
}

TEST_P(Publishing, ABatchOverTheLimitIsRefusedAsAWhole) {
    std::vector<NewEvent> batch(limits::kPublishBatch + 1, NewEvent{.type = "a"});
    std::vector<PublishReply> replies = events.Publish(batch);
    ASSERT_EQ(replies.size(), batch.size());
    EXPECT_EQ(replies.back().kind, Kind::kInvalid);
    EXPECT_THAT(events.ListEvents({}), IsEmpty());
}

TEST_P(Publishing, ATimeThatNoStoreKnowsIsInvalid) {
    for (Time time : {Time::max(), Time::min(), Time{-1us}}) {
        PublishReply reply = Publish({.time = time});
        EXPECT_EQ(reply.kind, Kind::kInvalid);
        EXPECT_THAT(reply.message, HasSubstr("time is "));
    }
    EXPECT_EQ(Publish({.time = Time{}}).kind, Kind::kAccepted);
    EXPECT_THAT(events.ListEvents({}), SizeIs(1));
}

TEST_P(Publishing, ListsFilterAndPage) {
    EventNo a = Happen({.type = "a"});
    EventNo b = Happen({.tenant = TenantId(2), .type = "b"});
    EventNo c = Happen({.type = "a"});
    auto numbers = [&](const EventFilter& filter) {
        std::vector<EventNo> found;
        for (const EventRecord& event : events.ListEvents(filter)) found.push_back(event.no);
        return found;
    };
    EXPECT_THAT(numbers({}), ElementsAre(c, b, a));
    EXPECT_THAT(numbers({.types = {"a"}}), ElementsAre(c, a));
    EXPECT_THAT(numbers({.tenant = TenantId(2)}), ElementsAre(b));
    EXPECT_THAT(numbers({.before = c}), ElementsAre(b, a));
    EXPECT_THAT(numbers({.limit = 1}), ElementsAre(c));
    Fire(a, {});
    EXPECT_THAT(numbers({.states = {EventState::kUnwanted}}), ElementsAre(a));
    EXPECT_THAT(numbers({.states = {EventState::kPending}}), ElementsAre(c, b));
}

// ---- definitions -------------------------------------------------------------------------------

EVENT_SUITE(Definitions);

TEST_P(Definitions, AreKeptAndHaveVersions) {
    WorkflowDefinition definition = Definition();
    definition.joins.push_back(JoinOf(JoinPolicy::kLatest));
    auto put = events.PutWorkflow(definition, "ann");
    ASSERT_TRUE(put) << put.error().message;
    EXPECT_EQ(put->version, 1);
    EXPECT_EQ(put->updated_by, "ann");
    std::vector<WorkflowRecord> all = OpenAgain()->Events().Workflows();
    ASSERT_THAT(all, SizeIs(1));
    EXPECT_EQ(all[0].definition, definition);
    EXPECT_TRUE(Near(all[0].updated_at, store.Now()));

    EXPECT_EQ(events.PutWorkflow(definition, "bob")->version, 1);
    definition.triggers[0].match = "size > 11";
    EXPECT_EQ(events.PutWorkflow(definition, "bob")->version, 2);
    EXPECT_EQ(events.Workflows().at(0).updated_by, "bob");
}

TEST_P(Definitions, BelongToATenant) {
    WorkflowDefinition one = Definition();
    WorkflowDefinition two = Definition();
    two.tenant = TenantId(2);
    ASSERT_TRUE(events.PutWorkflow(one, "ann"));
    ASSERT_TRUE(events.PutWorkflow(two, "ann"));
    EXPECT_THAT(events.Workflows(), SizeIs(2));
    EXPECT_TRUE(events.RemoveWorkflow(TenantId(2), "w"));
    EXPECT_FALSE(events.RemoveWorkflow(TenantId(2), "w"));
    EXPECT_THAT(events.Workflows(), SizeIs(1));
}

TEST_P(Definitions, EveryChangeIsANewRevision) {
    auto revision = [&] { return events.NextEvents({}).revision; };
    std::int64_t first = revision();
    ASSERT_TRUE(events.PutWorkflow(Definition(), "ann"));
    std::int64_t second = revision();
    EXPECT_NE(first, second);
    ASSERT_TRUE(events.PutWorkflow(Definition(), "ann"));
    EXPECT_EQ(revision(), second);
    events.RemoveWorkflow(kDefaultTenant, "w");
    EXPECT_NE(revision(), second);
}

TEST_P(Definitions, WhatIsWrongIsRefused) {
    WorkflowDefinition definition = Definition();
    definition.triggers[0].match = "size >";
    auto put = events.PutWorkflow(definition, "ann");
    ASSERT_FALSE(put);
    EXPECT_THAT(put.error().message, HasSubstr("triggers[0].match column 7"));
    EXPECT_THAT(events.Workflows(), IsEmpty());
}

// ---- firing ------------------------------------------------------------------------------------

EVENT_SUITE(Firing);

TEST_P(Firing, AnEventIsHandedOutToOneNodeAtATime) {
    EventNo no = Happen();
    auto other = OpenAgain();
    EXPECT_THAT(Next(), ElementsAre(no));
    EXPECT_THAT(other->Events().NextEvents({}).events, IsEmpty());
    EXPECT_THAT(Next(), IsEmpty());
    Advance(31s);
    std::vector<EventRecord> again = other->Events().NextEvents({}).events;
    ASSERT_THAT(again, SizeIs(1));
    EXPECT_EQ(again[0].tries, 2);
}

TEST_P(Firing, NoMoreThanAsked) {
    EventNo a = Happen();
    EventNo b = Happen();
    EventNo c = Happen();
    EXPECT_THAT(Next({.limit = 2}), ElementsAre(a, b));
    EXPECT_THAT(Next({.limit = 2}), ElementsAre(c));
}

TEST_P(Firing, NoMoreBytesThanANodeCanHold) {
    std::string large = '"' + std::string(limits::kInput - 2, 'x') + '"';
    const std::size_t fit = limits::kEventBytes / limits::kInput;
    for (std::size_t i = 0; i < fit + 2; ++i) Happen({.data = large});
    EXPECT_THAT(Next(), SizeIs(fit));
    EXPECT_THAT(Next(), SizeIs(2));
}

TEST_P(Firing, TheTaskAndTheRecordComeTogether) {
    EventNo no = Happen();
    FireReply reply =
        Fire(no, {Submits({.input = R"({"file":1})", .queue = "q", .priority = 150})});
    ASSERT_THAT(reply.fired, SizeIs(1));
    EXPECT_FALSE(reply.pending);
    EXPECT_THAT(reply.queues, ElementsAre("q"));
    TaskRecord task = Get(reply.fired[0].task);
    EXPECT_EQ(task.input, R"({"file":1})");
    EXPECT_EQ(task.queue, "q");
    EXPECT_EQ(task.priority, 150);
    EXPECT_EQ(AuditOf(task.id).front().actor, "trigger:w/first");

    EventRecord event = Event(no);
    EXPECT_EQ(event.state, EventState::kDone);
    ASSERT_TRUE(event.processed_at.has_value());
    std::vector<FiringRecord> fired = FiringsOf(no);
    ASSERT_THAT(fired, SizeIs(1));
    EXPECT_EQ(fired[0].workflow, "w");
    EXPECT_EQ(fired[0].trigger, "first");
    EXPECT_EQ(fired[0].version, 3);
    EXPECT_EQ(fired[0].kind, Fired::kSubmitted);
    EXPECT_EQ(fired[0].task, task.id);
    EXPECT_TRUE(Near(fired[0].at, store.Now()));
    EXPECT_THAT(events.Firings({.event = {}, .task = task.id, .workflow = {}}), SizeIs(1));
    EXPECT_THAT(events.Firings({.event = {}, .task = {}, .workflow = "w"}), SizeIs(1));
    EXPECT_THAT(events.Firings({.event = {}, .task = {}, .workflow = "x"}), IsEmpty());
}

TEST_P(Firing, TwiceProcessedIsOnceFired) {
    EventNo no = Happen();
    EXPECT_FALSE(Fire(no, {Submits({})}).ignored);
    FireReply again = Fire(no, {Submits({})});
    EXPECT_TRUE(again.ignored);
    EXPECT_THAT(again.fired, IsEmpty());
    EXPECT_EQ(Tasks(), 1u);
    EXPECT_THAT(FiringsOf(no), SizeIs(1));
}

TEST_P(Firing, OfTwoInOneCallOnlyOneFires) {
    EventNo no = Happen();
    std::vector<EventOutcome> both = {
        {.event = no, .actions = {Submits({})}, .refusal = {}},
        {.event = EventNo(no.value() + 999), .actions = {Submits({})}, .refusal = {}}};
    std::vector<FireReply> replies = events.Fire(both);
    EXPECT_FALSE(replies[0].ignored);
    EXPECT_TRUE(replies[1].ignored);
    EXPECT_EQ(Tasks(), 1u);
}

TEST_P(Firing, SeveralTriggersFireEach) {
    EventNo no = Happen();
    Fire(no, {Submits({}, "first"), Submits({}, "second")});
    EXPECT_EQ(Tasks(), 2u);
    EXPECT_THAT(FiringsOf(no), SizeIs(2));
}

TEST_P(Firing, AnEventNobodyWantsIsKeptAndCounted) {
    EventNo no = Happen();
    Fire(no, {});
    EXPECT_EQ(Event(no).state, EventState::kUnwanted);
    EXPECT_EQ((events.CountEvents()[{"file.ingested", EventState::kUnwanted}]), 1);
    EXPECT_THAT(Next(), IsEmpty());
    Advance(31s);
    EXPECT_THAT(Next(), IsEmpty());
}

TEST_P(Firing, ARefusedEventFiresNothingAndSaysWhy) {
    EventNo no = Happen();
    Fire({.event = no, .actions = {}, .refusal = "too much"});
    EXPECT_EQ(Event(no).state, EventState::kRefused);
    EXPECT_EQ(Event(no).reason, "too much");
}

TEST_P(Firing, AFullQueueKeepsTheEventWhileTheRestFires) {
    store.SetQueue({.name = "small", .cap = 0}, "ann");
    EventNo no = Happen();
    std::vector<Action> actions = {
        Submits({.queue = "small"}, "waits"), Submits({.queue = "large"}, "goes")};
    FireReply reply = Fire({.event = no, .actions = actions, .refusal = {}, .later = 1min});
    EXPECT_TRUE(reply.pending);
    ASSERT_THAT(reply.fired, SizeIs(1));
    EXPECT_EQ(reply.fired[0].trigger, "goes");
    EXPECT_EQ(Event(no).state, EventState::kPending);
    EXPECT_THAT(Event(no).reason, HasSubstr("full"));
    EXPECT_THAT(Next(), IsEmpty());
    Advance(61s);
    EXPECT_THAT(Next(), ElementsAre(no));

    store.SetQueue({.name = "small", .cap = 5}, "ann");
    reply = Fire({.event = no, .actions = actions, .refusal = {}});
    EXPECT_FALSE(reply.pending);
    ASSERT_THAT(reply.fired, SizeIs(1));
    EXPECT_EQ(reply.fired[0].trigger, "waits");
    EXPECT_EQ(Tasks(), 2u);
    EXPECT_EQ(Event(no).state, EventState::kDone);
}

TEST_P(Firing, AtLastAFullQueueIsARefusal) {
    store.SetQueue({.name = "small", .cap = 0}, "ann");
    EventNo no = Happen();
    Fire(
        {.event = no,
         .actions = {Submits({.queue = "small"})},
         .refusal = {},
         .later = {},
         .last = true}
    );
    EXPECT_EQ(Event(no).state, EventState::kDone);
    ASSERT_THAT(FiringsOf(no), SizeIs(1));
    EXPECT_EQ(FiringsOf(no)[0].kind, Fired::kRefused);
    EXPECT_THAT(FiringsOf(no)[0].message, HasSubstr("full"));
}

TEST_P(Firing, ATaskThatCanNeverBeIsRecorded) {
    EventNo no = Happen();
    Fire(
        no,
        {Submits({.type = "no good"}, "one"),
         Submits({}, "two"),
         {.workflow = "w", .trigger = "three", .version = 1, .what = Action::Refusal{"no field"}}}
    );
    std::vector<FiringRecord> fired = FiringsOf(no);
    ASSERT_THAT(fired, SizeIs(3));  // newest first: two, three, one
    EXPECT_EQ(fired[0].kind, Fired::kSubmitted);
    EXPECT_EQ(fired[1].message, "no field");
    EXPECT_EQ(fired[2].kind, Fired::kRefused);
    EXPECT_THAT(fired[2].message, HasSubstr("type is"));
    EXPECT_EQ(Tasks(), 1u);
}

TEST_P(Firing, AUniqueKeyNamesTheTaskThatIsThere) {
    EventNo one = Happen();
    EventNo two = Happen();
    TaskId made = Fire(one, {Submits({.unique_key = "k"})}).fired.at(0).task;
    FiringRecord second = Fire(two, {Submits({.unique_key = "k"})}).fired.at(0);
    EXPECT_EQ(second.kind, Fired::kExisting);
    EXPECT_EQ(second.task, made);
    EXPECT_EQ(Tasks(), 1u);
}

TEST_P(Firing, AnEventCompletesABackgroundTask) {
    Lease lease = MakeClaimed();
    SettleAs(lease, Settlement::Kind::kBackground, 1h);
    EventNo no = Happen();
    FireReply reply =
        Fire(no, {Finishes({.task = lease.task, .token = lease.token, .output = "[3]"})});
    ASSERT_THAT(reply.fired, SizeIs(1));
    EXPECT_EQ(reply.fired[0].kind, Fired::kFinished);
    EXPECT_EQ(reply.fired[0].task, lease.task);
    TaskRecord task = Get(lease.task);
    EXPECT_EQ(task.state, State::kComplete);
    EXPECT_EQ(task.output, "[3]");
    EXPECT_EQ(AuditOf(lease.task).back().actor, "trigger:w/first");
    EXPECT_EQ(AuditOf(lease.task).back().reason, "");
}

TEST_P(Firing, AnEventFailsABackgroundTask) {
    Lease lease = MakeClaimed({.retry = Fixed(3, 10min)});
    SettleAs(lease, Settlement::Kind::kBackground, 1h);
    EventNo no = Happen();
    Fire(
        no,
        {Finishes(
            {.task = lease.task,
             .token = std::nullopt,
             .success = false,
             .output = {},
             .message = "no paper"}
        )}
    );
    TaskRecord task = Get(lease.task);
    EXPECT_EQ(task.state, State::kError);
    EXPECT_EQ(task.error->message, "no paper");
    EXPECT_THAT(AuditOf(lease.task).back().reason, HasSubstr("override"));
}

TEST_P(Firing, AnEventThatComesBeforeItsTaskIsOutsideWaits) {
    Lease lease = MakeClaimed();
    EventNo no = Happen();
    EventOutcome outcome{
        .event = no,
        .actions = {Finishes({.task = lease.task, .token = lease.token, .output = "1"})},
        .refusal = {},
        .later = 1s};
    EXPECT_TRUE(Fire(outcome).pending);
    EXPECT_EQ(StateOf(lease.task), State::kInProgress);
    SettleAs(lease, Settlement::Kind::kBackground, 1h);
    EXPECT_FALSE(Fire(outcome).pending);
    EXPECT_EQ(StateOf(lease.task), State::kComplete);
}

TEST_P(Firing, ATaskThatIsOverOrUnknownIsARefusal) {
    Lease lease = MakeClaimed();
    Complete(lease);
    EventNo no = Happen();
    FireReply reply = Fire(
        no,
        {Finishes({.task = lease.task, .token = lease.token}, "over"),
         Finishes({.task = store.ReserveIds(1), .token = std::nullopt}, "unknown")}
    );
    EXPECT_FALSE(reply.pending);
    ASSERT_THAT(reply.fired, SizeIs(2));
    EXPECT_EQ(reply.fired[0].kind, Fired::kRefused);
    EXPECT_THAT(reply.fired[0].message, HasSubstr("not in background"));
    EXPECT_THAT(reply.fired[1].message, HasSubstr("there is no task"));
}

TEST_P(Firing, DepthGrowsFromEventToTaskToEventUntilItIsRefused) {
    EventNo no = Happen();
    for (int depth = 0; depth <= limits::kEventDepth; ++depth) {
        ASSERT_EQ(Event(no).depth, depth);
        TaskId task = Fire(no, {Submits({})}).fired.at(0).task;
        PublishReply reply = Publish({.cause = task});
        no = reply.no;
        ASSERT_EQ(reply.refused, depth == limits::kEventDepth) << reply.message;
    }
    EXPECT_EQ(Event(no).state, EventState::kRefused);
    EXPECT_THAT(Event(no).reason, HasSubstr("17 events deep"));
    Advance(31s);
    EXPECT_THAT(Next(), IsEmpty());
}

TEST_P(Firing, AChildsEventIsAsDeepAsItsParents) {
    TaskId parent = Fire(Happen(), {Submits({})}).fired.at(0).task;
    TaskId child = Make({.parent = parent});
    EXPECT_EQ(Event(Happen({.cause = child})).depth, 1);
    EXPECT_EQ(Event(Happen({.cause = Make()})).depth, 0);
}

TEST_P(Firing, ADescendantsEventIsAsDeepHoweverFarDownAndWhoeverIsFinished) {
    TaskId root = Fire(Happen(), {Submits({})}).fired.at(0).task;
    TaskId child = Make({.parent = root});
    TaskId below = Make({.parent = child});
    Lease first = ClaimOne(), second = ClaimOne();
    EXPECT_EQ(first.task, root);
    EXPECT_EQ(second.task, child);
    Complete(first);
    EXPECT_EQ(Event(Happen({.cause = child})).depth, 1);
    Complete(second);
    EXPECT_EQ(Event(Happen({.cause = below})).depth, 1);
    for (int i = 0; i < 2 * limits::kEventDepth; ++i) below = Make({.parent = below});
    EXPECT_EQ(Event(Happen({.cause = below})).depth, 1);
}

TEST_P(Firing, WhatAHandlerSubmitsIsAsDeepAsItsTask) {
    EventNo no = Happen();
    TaskId task = Fire(no, {Submits({})}).fired.at(0).task;
    TaskId first = Make({.cause = task});
    TaskId second = Make({.cause = first});
    EXPECT_EQ(Event(Happen({.cause = first})).depth, 1);
    EXPECT_EQ(Event(Happen({.cause = second})).depth, 1);
    EXPECT_EQ(Event(Happen({.cause = Make({.parent = second})})).depth, 1);
    // It is seen with the event, behind what that has fired.
    std::vector<FiringRecord> records = FiringsOf(no);
    ASSERT_THAT(records, SizeIs(3));
    EXPECT_EQ(records[0].kind, Fired::kSubmitted);
    EXPECT_EQ(records[0].task, task);
    std::vector<TaskId> followed = {records[1].task, records[2].task};
    EXPECT_THAT(followed, UnorderedElementsAre(first, second));
    EXPECT_EQ(records[1].kind, Fired::kFollowed);
    EXPECT_EQ(records[1].workflow, "");
    // Nothing is written about tasks that no event led to.
    TaskId outside = Make({.cause = Make()});
    EXPECT_EQ(Event(Happen({.cause = outside})).depth, 0);
    EXPECT_THAT(events.Firings({.event = {}, .task = outside, .workflow = {}}), IsEmpty());
}

TEST_P(Firing, ADetourThroughSubmitsDoesNotMakeACircleEndless) {
    EventNo no = Happen();
    for (int depth = 0; depth <= limits::kEventDepth; ++depth) {
        ASSERT_EQ(Event(no).depth, depth);
        TaskId task = Fire(no, {Submits({})}).fired.at(0).task;
        PublishReply reply = Publish({.cause = Make({.cause = Make({.cause = task})})});
        no = reply.no;
        ASSERT_EQ(reply.refused, depth == limits::kEventDepth) << reply.message;
    }
}

TEST_P(Firing, WhatIsSubmittedBelowFinishedTasksIsAsDeep) {
    TaskId root = Fire(Happen(), {Submits({})}).fired.at(0).task;
    TaskId child = Make({.parent = root});
    TaskId below = Make({.parent = child});
    Lease first = ClaimOne(), second = ClaimOne();
    EXPECT_EQ(first.task, root);
    EXPECT_EQ(second.task, child);
    EXPECT_EQ(Event(Happen({.cause = Make({.cause = below})})).depth, 1);
    Complete(first);
    Complete(second);
    EXPECT_EQ(Event(Happen({.cause = Make({.cause = below})})).depth, 1);
    EXPECT_EQ(Event(Happen({.cause = Make({.cause = root})})).depth, 1);
}

TEST_P(Firing, EveryWayToSubmitCarriesTheCause) {
    TaskId task = Fire(Happen(), {Submits({})}).fired.at(0).task;
    auto depth = [&](TaskId cause) { return Event(Happen({.cause = cause})).depth; };
    // Several at once, all or none, and one that starts after another.
    std::vector<NewTask> two(2, NewTask{.type = "t", .cause = task});
    for (const SubmitReply& reply : store.Submit(two)) EXPECT_EQ(depth(reply.id), 1);
    for (const SubmitReply& reply : store.SubmitAll(two)) EXPECT_EQ(depth(reply.id), 1);
    EXPECT_EQ(depth(Make({.cause = task, .after = WaitOn{.on = {task}}})), 1);
    // A waiting task that takes the request over, again and again.
    TaskId waiting = Make({.unique_key = "k"});
    EXPECT_EQ(depth(waiting), 0);
    NewTask replaces{
        .unique_key = "k", .unique_policy = UniquePolicy::kReplaceIfNotStarted, .cause = task};
    for (int i = 0; i < 2; ++i) {
        SubmitReply reply = Submit(replaces);
        EXPECT_EQ(reply.kind, SubmitReply::Kind::kReplaced);
        EXPECT_EQ(reply.id, waiting);
        EXPECT_EQ(depth(waiting), 1);
    }
    EXPECT_EQ(depth(Make({.idempotency_key = "i", .cause = task})), 1);
    // The cause is no part of the request.
    EXPECT_EQ(Submit({.idempotency_key = "i"}).kind, SubmitReply::Kind::kExisting);
}

TEST_P(Firing, WhatFollowsIsForgottenWithTheEvent) {
    EventNo no = Happen();
    TaskId task = Fire(no, {Submits({})}).fired.at(0).task;
    TaskId follows = Make({.cause = task});
    Advance(limits::kEventRetention + 1h);
    EXPECT_EQ(events.Tidy({}).forgotten_events, 1);
    EXPECT_THAT(FiringsOf(no), IsEmpty());
    EXPECT_THAT(events.Firings({.event = {}, .task = follows, .workflow = {}}), IsEmpty());
}

TEST_P(Firing, WhatNobodyCanReadHereKeepsTheEventPendingWhileTheRestFires) {
    EventNo no = Happen();
    EventOutcome outcome{.event = no, .actions = {Submits({})}, .refusal = {}, .later = 1min};
    outcome.wait = "a newer program";
    FireReply reply = Fire(outcome);
    EXPECT_TRUE(reply.pending);
    EXPECT_THAT(reply.fired, SizeIs(1));
    EXPECT_EQ(Event(no).state, EventState::kPending);
    EXPECT_EQ(Event(no).reason, "a newer program");
    EXPECT_THAT(Next(), IsEmpty());
    Advance(61s);
    EXPECT_THAT(Next(), ElementsAre(no));
    reply = Fire(no, {Submits({}), Submits({}, "second")});
    EXPECT_FALSE(reply.pending);
    ASSERT_THAT(reply.fired, SizeIs(1));
    EXPECT_EQ(reply.fired[0].trigger, "second");
    EXPECT_EQ(Tasks(), 2u);
    EXPECT_EQ(Event(no).state, EventState::kDone);
}

TEST_P(Firing, AnEventOfACallIsPublishedAndFiredTogether) {
    NewEvent event{.source = "s", .id = "1", .type = "e"};
    EventOutcome outcome{.event = {}, .actions = {Submits({})}, .refusal = {}};
    outcome.last = true;
    outcome.here = event;
    FireReply reply = Fire(outcome);
    ASSERT_TRUE(reply.published.has_value());
    EXPECT_EQ(reply.published->kind, Kind::kAccepted);
    ASSERT_THAT(reply.fired, SizeIs(1));
    EventNo no = reply.published->no;
    EXPECT_EQ(reply.fired[0].event, no);
    EXPECT_EQ(Event(no).state, EventState::kDone);
    EXPECT_THAT(FiringsOf(no), SizeIs(1));
    EXPECT_THAT(Next(), IsEmpty());
    // The same again is the same event.
    FireReply again = Fire(outcome);
    EXPECT_EQ(again.published->kind, Kind::kExisting);
    EXPECT_EQ(again.published->no, no);
    EXPECT_TRUE(again.ignored);
    outcome.here->type = "other";
    EXPECT_EQ(Fire(outcome).published->kind, Kind::kConflict);
    outcome.here->type = "no name";
    EXPECT_EQ(Fire(outcome).published->kind, Kind::kInvalid);
    EXPECT_EQ(Tasks(), 1u);
    // Depth goes on, until it is refused and fires nothing.
    TaskId cause = reply.fired[0].task;
    for (int depth = 1; depth <= limits::kEventDepth; ++depth) {
        outcome.here = NewEvent{.type = "e", .cause = cause};
        cause = Fire(outcome).fired.at(0).task;
    }
    outcome.here->cause = cause;
    FireReply last = Fire(outcome);
    EXPECT_TRUE(last.published->refused);
    EXPECT_THAT(last.fired, IsEmpty());
    EXPECT_EQ(Tasks(), static_cast<std::size_t>(limits::kEventDepth) + 1);
}

TEST_P(Firing, WhatWasProcessedLongAgoIsForgottenWithItsId) {
    EventNo old = Happen({.source = "s", .id = "1"});
    Fire(old, {Submits({})});
    EventNo pending = Happen({.source = "s", .id = "2"});
    Advance(limits::kEventRetention - 1h);
    EXPECT_EQ(events.Tidy({}).forgotten_events, 0);
    Advance(2h);
    EXPECT_EQ(events.Tidy({}).forgotten_events, 1);
    EXPECT_EQ(events.GetEvent(old), std::nullopt);
    EXPECT_THAT(FiringsOf(old), IsEmpty());
    EXPECT_TRUE(events.GetEvent(pending).has_value());
    EXPECT_NE(Happen({.source = "s", .id = "1"}), old);
}

}  // namespace
}  // namespace stint::conformance
