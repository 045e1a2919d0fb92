#include "services/events.h"

#include <gmock/gmock.h>

#include "model/event/workflow.h"
#include "model/limits.h"
#include "services/event_explain.h"
#include "support/engine_rig.h"

namespace stint::services {
namespace {

using engine::Done;
using engine::Eventually;
using engine::Rig;
using engine::Trouble;
using model::EventState;
using store::FiringRecord;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using namespace std::chrono_literals;

struct EventRig : Rig {
    EventService service{store, wake, clock, random, {.poll = {50ms, 2s}, .log = options.log}};

    explicit EventRig(std::string_view definition = {}) {
        if (!definition.empty()) Put(definition);
    }
    void Put(std::string_view definition) {
        auto parsed = model::WorkflowFromJson(definition);
        ASSERT_TRUE(parsed) << parsed.error().message;
        ASSERT_TRUE(memory.Events().PutWorkflow(*parsed, "test"));
    }
    EventNo Publish(std::string type, std::string data, model::NewEvent event = {}) {
        event.type = std::move(type);
        event.data = std::move(data);
        store::PublishReply reply = memory.Events().Publish({&event, 1}).at(0);
        EXPECT_TRUE(reply.no.valid()) << reply.message;
        return reply.no;
    }
    model::EventRecord Event(EventNo no) { return memory.Events().GetEvent(no).value(); }
    std::vector<FiringRecord> Fired(EventNo no) {
        store::FiringFilter filter;
        filter.event = no;
        return memory.Events().Firings(filter);
    }
    std::vector<std::string> Inputs(const std::string& type) {
        std::vector<std::string> inputs;
        for (const auto& task : memory.List({.filter = {.types = {type}}, .before = {}}).tasks) {
            inputs.push_back(task.input);
        }
        return inputs;
    }
};

// The definitions of the source documents: the five expressions, each its own task.
constexpr std::string_view kMedia = R"({"name":"content-analysis","triggers":[
  {"name":"id3","on":"file.ingested","match":"mimeType = 'audio/mpeg'",
   "submit":{"type":"id3","input":{"path":"${path}"},"priority":150}},
  {"name":"exif","on":"file.ingested","match":"mimeType startsWith 'image/'",
   "submit":{"type":"exif"}},
  {"name":"ocr","on":"file.ingested",
   "match":"filename endsWith '.pdf' OR mimeType = 'application/pdf'",
   "submit":{"type":"ocr"}},
  {"name":"unpack","on":"file.ingested","match":"mimeType contains 'zip' AND size > 1024",
   "submit":{"type":"unpack"}},
  {"name":"virus","on":"file.ingested","match":"size > 0","submit":{"type":"virus"}}]})";

// Most stores have no joins, and tasks finish all the time.
TEST(Events, AFinishedTaskIsNoReasonToLookWhereNothingJoins) {
    EventRig rig;
    const std::vector<wake::Hint> finished{{wake::Hint::Kind::kTaskFinished, {}, TaskId(1)}};
    rig.service.RunOnce();
    EXPECT_FALSE(rig.service.told());
    rig.wake.Signal(finished);
    EXPECT_FALSE(rig.service.told());
    rig.Put(R"({"name":"w","joins":[{"name":"both","types":["left","right"],"key":"input.file",
                                     "submit":{"type":"joined"}}]})");
    rig.service.RunOnce();
    rig.wake.Signal(finished);
    EXPECT_TRUE(rig.service.told());
}

TEST(Events, EachMatchingTriggerSubmitsItsTask) {
    EventRig rig(kMedia);
    EventNo no =
        rig.Publish("file.ingested", R"({"path":"/a.mp3","mimeType":"audio/mpeg","size":9})");
    rig.service.RunOnce();
    EXPECT_EQ(rig.Event(no).state, EventState::kDone);
    EXPECT_THAT(rig.Inputs("id3"), ElementsAre(R"({"path":"/a.mp3"})"));
    EXPECT_THAT(
        rig.Inputs("virus"), ElementsAre(R"({"mimeType":"audio/mpeg","path":"/a.mp3","size":9})")
    );
    EXPECT_THAT(rig.Inputs("exif"), IsEmpty());
    EXPECT_THAT(rig.Fired(no), SizeIs(2));
    auto id3 = rig.memory.List({.filter = {.types = {"id3"}}, .before = {}}).tasks.at(0);
    EXPECT_EQ(id3.priority, 150);

    rig.Publish(
        "file.ingested", R"({"mimeType":"application/x-zip","size":2048,"filename":"a.pdf"})"
    );
    rig.service.RunOnce();
    EXPECT_THAT(rig.Inputs("unpack"), SizeIs(1));
    EXPECT_THAT(rig.Inputs("ocr"), SizeIs(1));
    EXPECT_THAT(rig.Inputs("virus"), SizeIs(2));
}

TEST(Events, WhatNobodyWantsIsKeptAsUnwanted) {
    EventRig rig(kMedia);
    EventNo other = rig.Publish("file.deleted", "{}");
    EventNo small = rig.Publish("file.ingested", R"({"size":0})");
    rig.service.RunOnce();
    EXPECT_EQ(rig.Event(other).state, EventState::kUnwanted);
    EXPECT_EQ(rig.Event(small).state, EventState::kUnwanted);
}

TEST(Events, AnotherTenantsDefinitionsDoNotApply) {
    EventRig rig(kMedia);
    EventNo no = rig.Publish("file.ingested", R"({"size":9})", {.tenant = TenantId(2)});
    rig.service.RunOnce();
    EXPECT_EQ(rig.Event(no).state, EventState::kUnwanted);
}

TEST(Events, AChangedDefinitionAppliesToTheNextEvent) {
    EventRig rig(kMedia);
    rig.Publish("file.ingested", R"({"size":9})");
    rig.service.RunOnce();
    EXPECT_THAT(rig.Inputs("virus"), SizeIs(1));
    rig.Put(R"({"name":"content-analysis","triggers":[
        {"name":"virus","on":"file.ingested","match":"size > 100","submit":{"type":"virus"}}]})");
    rig.Publish("file.ingested", R"({"size":9})");
    rig.service.RunOnce();
    EXPECT_THAT(rig.Inputs("virus"), SizeIs(1));
}

TEST(Events, AFiredTaskWakesTheWorker) {
    EventRig rig(kMedia);
    std::vector<std::string> queues;
    int listener = rig.wake.Subscribe([&](const wake::Hint& hint) {
        if (hint.kind == wake::Hint::Kind::kTaskAvailable) queues.push_back(hint.queue);
    });
    rig.Publish("file.ingested", R"({"size":9})");
    rig.service.RunOnce();
    EXPECT_THAT(queues, ElementsAre("default"));
    rig.wake.Unsubscribe(listener);
}

TEST(Events, AnEventFinishesTheTaskItNames) {
    EventRig rig(R"({"name":"print","triggers":[
        {"name":"done","on":"printer.done","match":"ok = true",
         "complete":{"task":"${job}","token":"${token}","output":{"pages":"${pages}"}}},
        {"name":"broken","on":"printer.done","match":"ok = false",
         "fail":{"task":"${job}","message":"${why}","retryable":false}}]})");
    std::string token;
    rig.Handle("print", [&](Context& context, std::string_view) -> Outcome<std::string> {
        token = context.completion_token();
        return Background{"printing", 1h};
    });
    rig.Open();
    TaskId first = rig.Submit("print");
    rig.Drive();
    rig.Publish(
        "printer.done",
        R"({"ok":true,"pages":3,"job":")" + first.ToString() + R"(","token":")" + token + "\"}"
    );
    rig.service.RunOnce();
    EXPECT_EQ(rig.StateOf(first), model::State::kComplete);
    EXPECT_EQ(rig.Get(first).output, R"({"pages":3})");

    TaskId second = rig.Submit("print");
    rig.Drive();
    rig.Publish(
        "printer.done", R"({"ok":false,"why":"no paper","job":")" + second.ToString() + "\"}"
    );
    rig.service.RunOnce();
    EXPECT_EQ(rig.StateOf(second), model::State::kDead);
    EXPECT_EQ(rig.Get(second).error->message, "no paper");
}

TEST(Events, AnEventDoesNotReachTasksOfAnotherTenant) {
    EventRig rig;
    auto parsed = model::WorkflowFromJson(R"({"name":"print","triggers":[
        {"name":"done","on":"printer.done","complete":{"task":"${job}"}}]})");
    parsed->tenant = TenantId(2);
    ASSERT_TRUE(rig.memory.Events().PutWorkflow(*parsed, "test"));
    rig.Handle("print", [](Context&, std::string_view) -> Outcome<std::string> {
        return Background{"printing", 1h};
    });
    rig.Open();
    TaskId task = rig.Submit("print");
    rig.Drive();
    EventNo no = rig.Publish(
        "printer.done", R"({"job":")" + task.ToString() + "\"}", {.tenant = TenantId(2)}
    );
    rig.service.RunOnce();
    EXPECT_EQ(rig.StateOf(task), model::State::kBackground);
    ASSERT_THAT(rig.Fired(no), SizeIs(1));
    EXPECT_THAT(rig.Fired(no)[0].message, HasSubstr("there is no task"));
}

constexpr std::string_view kSmall = R"({"name":"w","triggers":[
    {"name":"a","on":"e","submit":{"type":"t","queue":"small"}}]})";

TEST(Events, AFullQueueIsTriedAgainUntilItIsGivenUp) {
    EventRig rig(kSmall);
    rig.memory.SetQueue({.name = "small", .cap = 0}, "test");
    EventNo no = rig.Publish("e", "{}");
    rig.service.RunOnce();
    EXPECT_EQ(rig.Event(no).state, EventState::kPending);
    rig.service.RunOnce();
    EXPECT_EQ(rig.Event(no).tries, 1) << "not before its time";
    rig.clock.Advance(2s);
    rig.service.RunOnce();
    EXPECT_EQ(rig.Event(no).tries, 2);
    for (int i = 2; i < model::limits::kEventTries; ++i) {
        rig.clock.Advance(65s);
        rig.service.RunOnce();
    }
    rig.clock.Advance(model::limits::kEventPatience);
    rig.service.RunOnce();
    EXPECT_EQ(rig.Event(no).state, EventState::kDone);
    EXPECT_EQ(rig.Fired(no).at(0).kind, FiringRecord::Kind::kRefused);
    EXPECT_TRUE(rig.Logged("its action is refused"));
}

TEST(Events, WhatWaitedADayForAnyWorkerIsNotGivenUpAtTheFirstTry) {
    EventRig rig(kSmall);
    rig.memory.SetQueue({.name = "small", .cap = 0}, "test");
    EventNo no = rig.Publish("e", "{}");
    rig.clock.Advance(model::limits::kEventPatience + 1h);
    rig.service.RunOnce();
    EXPECT_EQ(rig.Event(no).state, EventState::kPending);
    rig.memory.SetQueue({.name = "small", .cap = 5}, "test");
    rig.clock.Advance(2s);
    rig.service.RunOnce();
    EXPECT_THAT(rig.Inputs("t"), SizeIs(1));
}

TEST(Events, ADefinitionOfANewerProgramKeepsItsTenantsEventsPending) {
    EventRig rig(kMedia);
    rig.Put(R"({"name":"tomorrow","triggers":[
        {"name":"new","on":"file.ingested","submit":{"type":"new"}}]})");
    rig.store.unreadable_workflow = "tomorrow";
    EventNo no = rig.Publish("file.ingested", R"({"size":9})");
    EventNo other = rig.Publish("file.ingested", R"({"size":9})", {.tenant = TenantId(2)});
    rig.service.RunOnce();
    EXPECT_THAT(rig.Inputs("virus"), SizeIs(1)) << "what can be read fires";
    EXPECT_EQ(rig.Event(no).state, EventState::kPending);
    EXPECT_THAT(rig.Event(no).reason, HasSubstr("workflow tomorrow, version 1, cannot be read"));
    EXPECT_EQ(rig.Event(other).state, EventState::kUnwanted);
    model::NewEvent here{.type = "file.ingested", .data = R"({"size":9})"};
    auto fired = rig.service.HandleHere(here);
    ASSERT_FALSE(fired);
    EXPECT_THAT(fired.error().message, HasSubstr("publish it without in_process"));

    rig.store.unreadable_workflow.clear();
    EventService newer(rig.store, rig.wake, rig.clock, rig.random, {.log = {}});
    rig.clock.Advance(2s);
    newer.RunOnce();
    EXPECT_EQ(rig.Event(no).state, EventState::kDone);
    EXPECT_THAT(rig.Inputs("new"), SizeIs(1));
    EXPECT_THAT(rig.Inputs("virus"), SizeIs(1));
}

TEST(Events, WhatGrowsBeyondTheLimitOfAnInputIsRefusedWhileItIsBuilt) {
    std::string places;
    for (int i = 0; i < 30'000; ++i) places += R"(,"${x}")";
    EventRig rig(
        R"({"name":"w","triggers":[{"name":"a","on":"e","submit":{"type":"t","input":[1)" + places +
        "]}}]}"
    );
    EventNo no =
        rig.Publish("e", R"({"x":")" + std::string(model::limits::kInput - 100, 'x') + "\"}");
    rig.service.RunOnce();
    ASSERT_THAT(rig.Fired(no), SizeIs(1));
    EXPECT_EQ(rig.Fired(no)[0].kind, FiringRecord::Kind::kRefused);
    EXPECT_THAT(rig.Fired(no)[0].message, HasSubstr("input becomes larger than the limit"));
}

TEST(Events, MoreTriggersThanTheLimitAreRefusedAsAWhole) {
    EventRig rig;
    for (int i = 0; i < 6; ++i) {
        model::WorkflowDefinition definition;
        definition.name = "w" + std::to_string(i);
        for (int k = 0; k < model::limits::kTriggersPerWorkflow; ++k) {
            model::Trigger trigger;
            trigger.name = "t" + std::to_string(k);
            trigger.on = "e";
            trigger.action = model::TaskTemplate{.type = "t"};
            definition.triggers.push_back(trigger);
        }
        ASSERT_TRUE(rig.memory.Events().PutWorkflow(definition, "test"));
    }
    EventNo no = rig.Publish("e", "{}");
    rig.service.RunOnce();
    EXPECT_EQ(rig.Event(no).state, EventState::kRefused);
    EXPECT_THAT(rig.Event(no).reason, HasSubstr("would fire 1200 triggers"));
    EXPECT_THAT(rig.Inputs("t"), IsEmpty());
    auto here = rig.service.HandleHere({.type = "e", .data = "{}"});
    ASSERT_FALSE(here);
    EXPECT_EQ(here.error().code, Code::kLimit);
    EXPECT_THAT(rig.Inputs("t"), IsEmpty());
}

TEST(Events, MoreBytesThanTheLimitAreRefusedAsAWhole) {
    EventRig rig;
    model::WorkflowDefinition definition;
    definition.name = "w";
    for (int k = 0; k < 65; ++k) {
        model::Trigger trigger;
        trigger.name = "t" + std::to_string(k);
        trigger.on = "e";
        trigger.action = model::TaskTemplate{.type = "t"};
        definition.triggers.push_back(trigger);
    }
    ASSERT_TRUE(rig.memory.Events().PutWorkflow(definition, "test"));
    EventNo no = rig.Publish("e", '"' + std::string(model::limits::kInput - 2, 'x') + '"');
    rig.service.RunOnce();
    EXPECT_EQ(rig.Event(no).state, EventState::kRefused);
    EXPECT_THAT(rig.Event(no).reason, HasSubstr("bytes of input, and the limit is"));
}

TEST(Events, ACircleOfTasksAndEventsEnds) {
    EventRig rig(R"({"name":"w","triggers":[{"name":"a","on":"e","submit":{"type":"again"}}]})");
    int runs = 0;
    std::string refusal;
    rig.Handle("again", [&](Context& context, std::string_view) {
        ++runs;
        model::NewEvent event{.type = "e", .cause = context.id()};
        auto reply = rig.memory.Events().Publish({&event, 1}).at(0);
        if (reply.refused) refusal = reply.message;
        return Done();
    });
    rig.Open();
    rig.Publish("e", "{}");
    for (int i = 0; i < 40; ++i) {
        rig.service.RunOnce();
        rig.Drive();
    }
    EXPECT_EQ(runs, model::limits::kEventDepth + 1);
    EXPECT_THAT(refusal, HasSubstr("fires it again"));
}

constexpr std::string_view kJoin = R"({"name":"w","joins":[
  {"name":"both","types":["left","right"],"key":"input.file","ttl":"1h",
   "submit":{"type":"joined",
             "input":{"file":"${key}","sum":["${outputs.left}","${outputs.right}"]}}}]})";

TEST(Events, AJoinFiresWhenItsMembersAreComplete) {
    EventRig rig(kJoin);
    rig.Handle("left", [](Context&, std::string_view) { return Done("1"); });
    rig.Handle("right", [](Context&, std::string_view) { return Done("2"); });
    rig.Open();
    rig.Submit("left", {.input = R"({"file":"a"})"});
    rig.Submit("right", {.input = R"({"file":"b"})"});
    rig.Drive();
    rig.service.RunOnce();
    EXPECT_THAT(rig.Inputs("joined"), IsEmpty());
    rig.Submit("right", {.input = R"({"file":"a"})"});
    rig.Drive();
    rig.service.RunOnce();
    EXPECT_THAT(rig.Inputs("joined"), ElementsAre(R"({"file":"a","sum":[1,2]})"));
}

TEST(Events, AMemberWithoutAKeyIsARefusalThatNamesIt) {
    EventRig rig(kJoin);
    rig.Handle("left", [](Context&, std::string_view) { return Done("1"); });
    rig.Open();
    TaskId task = rig.Submit("left", {.input = "{}"});
    rig.Drive();
    rig.service.RunOnce();
    auto events = rig.memory.Events().ListEvents({});
    ASSERT_THAT(events, SizeIs(1));
    ASSERT_THAT(rig.Fired(events[0].no), SizeIs(1));
    EXPECT_THAT(
        rig.Fired(events[0].no)[0].message,
        HasSubstr("input.file of task " + task.ToString() + ", is not there")
    );
}

TEST(Events, AnExpiredJoinIsLogged) {
    EventRig rig(kJoin);
    rig.Handle("left", [](Context&, std::string_view) { return Done("1"); });
    rig.Open();
    rig.Submit("left", {.input = R"({"file":"a"})"});
    rig.Drive();
    rig.service.RunOnce();
    rig.clock.Advance(2h);
    rig.service.RunOnce();
    EXPECT_TRUE(rig.Logged("a join has expired"));
    EXPECT_EQ(rig.memory.Events().Joins({}).at(0).state, model::JoinState::kExpired);
}

TEST(Events, InProcessEventsFireAtOnceAndOnlyTheirFiringsAreStored) {
    EventRig rig(kMedia);
    model::NewEvent event{.type = "file.ingested", .data = R"({"size":9})"};
    auto fired = rig.service.HandleHere(event);
    ASSERT_TRUE(fired) << fired.error().message;
    ASSERT_THAT(*fired, SizeIs(1));
    EXPECT_EQ(fired->at(0).kind, FiringRecord::Kind::kSubmitted);
    EXPECT_THAT(rig.Inputs("virus"), SizeIs(1));
    auto stored = rig.memory.Events().ListEvents({});
    ASSERT_THAT(stored, SizeIs(1));
    EXPECT_EQ(stored[0].state, EventState::kDone);
    EXPECT_EQ(stored[0].data, "null");
    ASSERT_TRUE(rig.service.HandleHere({.type = "file.ingested", .data = R"({"size":0})"}));
    EXPECT_THAT(rig.memory.Events().ListEvents({}), SizeIs(1)) << "nothing fired, nothing stored";
    // With an id the same event again is the same task.
    event.id = "1";
    ASSERT_TRUE(rig.service.HandleHere(event));
    ASSERT_TRUE(rig.service.HandleHere(event));
    EXPECT_THAT(rig.Inputs("virus"), SizeIs(2));
    event.data = "{";
    EXPECT_FALSE(rig.service.HandleHere(event));
}

TEST(Events, ACircleOfTasksAndInProcessEventsEnds) {
    EventRig rig(R"({"name":"w","triggers":[{"name":"a","on":"e","submit":{"type":"again"}}]})");
    model::NewEvent event{.type = "e"};
    int rounds = 0;
    for (; rounds < 40; ++rounds) {
        auto fired = rig.service.HandleHere(event);
        if (!fired) {
            EXPECT_EQ(fired.error().code, Code::kLimit);
            EXPECT_THAT(fired.error().message, HasSubstr("17 events deep"));
            break;
        }
        event.cause = fired->at(0).task;
    }
    EXPECT_EQ(rounds, model::limits::kEventDepth + 1);
}

TEST(Events, AnInProcessEventFiresAsAWholeOrNotAtAll) {
    EventRig rig(R"({"name":"w","triggers":[{"name":"a","on":"e","submit":{"type":"a"}},
        {"name":"b","on":"e","submit":{"type":"b"}}]})");
    rig.store.Next("fire", Trouble::kUnavailable);
    EXPECT_THROW((void)rig.service.HandleHere({.type = "e"}), store::Unavailable);
    EXPECT_THAT(rig.Inputs("a"), IsEmpty());
    // An unknown end is asked again, and fires once.
    rig.store.Next("fire", Trouble::kUnknownAfter);
    auto fired = rig.service.HandleHere({.type = "e"});
    ASSERT_TRUE(fired) << fired.error().message;
    EXPECT_THAT(*fired, SizeIs(2));
    EXPECT_THAT(rig.Inputs("a"), SizeIs(1));
    EXPECT_THAT(rig.Inputs("b"), SizeIs(1));
}

TEST(Events, APublishWhoseEndIsUnknownIsRepeatedAndIsOneEvent) {
    EventRig rig(kMedia);
    for (Trouble trouble : {Trouble::kUnknownAfter, Trouble::kUnknownBefore}) {
        rig.store.Next("publish_event", trouble);
        auto no = rig.service.Publish({.type = "file.ingested", .data = R"({"size":9})"});
        ASSERT_TRUE(no) << no.error().message;
    }
    EXPECT_THAT(rig.memory.Events().ListEvents({}), SizeIs(2));
    rig.service.RunOnce();
    EXPECT_THAT(rig.Inputs("virus"), SizeIs(2));
}

TEST(Events, APublishIsUnknownWhenTheStoreStaysAwayAfterAnUnknownEnd) {
    engine::ThreadedRig rig;
    EventService service(rig.store, rig.wake, rig.clock, base::SystemRandom(), {});
    rig.store.Next("publish_event", Trouble::kUnknownAfter);
    rig.store.Next("publish_event", Trouble::kUnavailable, 100);
    std::atomic<bool> over = false;
    std::string message;
    std::jthread publisher([&] {
        auto no = service.Publish({.type = "e"});
        EXPECT_EQ(no.error().code, Code::kUnknown);
        message = no.error().message;
        over = true;
    });
    EXPECT_TRUE(Eventually([&] {
        rig.clock.Advance(20ms);
        return over.load();
    }));
    publisher.join();
    EXPECT_THAT(message, HasSubstr("publish it again with the same source and id"));
    rig.store.SetDown(true);
    EXPECT_EQ(service.Publish({.type = "e"}).error().code, Code::kUnavailable);
}

TEST(Events, AStoreThatFailsIsTriedAgain) {
    EventRig rig(kMedia);
    rig.Publish("file.ingested", R"({"size":9})");
    rig.store.Next("next_events", Trouble::kUnavailable);
    rig.service.RunOnce();
    EXPECT_TRUE(rig.Logged("events cannot be processed now"));
    rig.service.RunOnce();
    EXPECT_THAT(rig.Inputs("virus"), SizeIs(1));
    EXPECT_TRUE(rig.Logged("events are processed again"));
}

TEST(Events, AnUnknownEndOfAFiringIsNotASecondFiring) {
    EventRig rig(kMedia);
    EventNo no = rig.Publish("file.ingested", R"({"size":9})");
    rig.store.Next("fire", Trouble::kUnknownAfter);
    rig.service.RunOnce();
    rig.clock.Advance(31s);
    rig.service.RunOnce();
    EXPECT_THAT(rig.Inputs("virus"), SizeIs(1));
    EXPECT_EQ(rig.Event(no).state, EventState::kDone);
}

TEST(Events, OneEventThatCannotBeFiredHoldsUpNoOther) {
    EventRig rig(kMedia);
    EventNo first = rig.Publish("file.ingested", R"({"size":9})");
    EventNo second = rig.Publish("file.ingested", R"({"size":9})");
    // The two together, then the first alone.
    rig.store.Next("fire", Trouble::kUnstorable, 2);
    rig.service.RunOnce();
    EXPECT_EQ(rig.Event(first).state, EventState::kPending);
    EXPECT_THAT(rig.Event(first).reason, HasSubstr("the store cannot take what it fires"));
    EXPECT_EQ(rig.Event(second).state, EventState::kDone);
}

TEST(Events, TheRestOfABatchFiresWhenOneCannot) {
    EventRig rig;
    model::WorkflowDefinition definition;
    definition.name = "w";
    for (int k = 0; k < 10; ++k) {
        model::Trigger trigger;
        trigger.name = "t" + std::to_string(k);
        trigger.on = "e";
        trigger.action = model::TaskTemplate{.type = "t"};
        definition.triggers.push_back(trigger);
    }
    ASSERT_TRUE(rig.memory.Events().PutWorkflow(definition, "test"));
    std::string large = '"' + std::string(model::limits::kInput - 2, 'x') + '"';
    std::vector<EventNo> all;
    for (int i = 0; i < 3; ++i) all.push_back(rig.Publish("e", large));
    // The first two are one piece, the third is the next one.
    rig.store.Next("fire", Trouble::kUnstorable, 2);
    rig.service.RunOnce();
    EXPECT_EQ(rig.Event(all[0]).state, EventState::kPending);
    EXPECT_EQ(rig.Event(all[1]).state, EventState::kDone);
    EXPECT_EQ(rig.Event(all[2]).state, EventState::kDone);
}

TEST(Events, WhatTheStoreCanNeverTakeIsRefusedAfterSomeTries) {
    EventRig rig(kMedia);
    EventNo no = rig.Publish("file.ingested", R"({"size":9})");
    for (int i = 0; i < model::limits::kFailedTries; ++i) {
        EXPECT_EQ(rig.Event(no).state, EventState::kPending);
        rig.store.Next("fire", Trouble::kUnstorable);
        rig.service.RunOnce();
        rig.clock.Advance(65s);
    }
    EXPECT_EQ(rig.Event(no).state, EventState::kRefused);
    EXPECT_THAT(rig.Event(no).reason, HasSubstr("the store cannot take what it fires"));
    EXPECT_EQ(rig.Event(no).tries, model::limits::kFailedTries);
}

TEST(Events, APublishedEventIsProcessedWithoutTimePassing) {
    engine::ThreadedRig rig;
    auto parsed = model::WorkflowFromJson(kMedia);
    ASSERT_TRUE(rig.memory.Events().PutWorkflow(*parsed, "test"));
    EventService service(
        rig.store, rig.wake, rig.clock, base::SystemRandom(), {.poll = {1h, 2h}, .log = {}}
    );
    service.Start();
    ASSERT_TRUE(Eventually([&] { return rig.store.calls("next_events") > 0; }));
    model::NewEvent event{.type = "file.ingested", .data = R"({"size":9})"};
    rig.memory.Events().Publish({&event, 1});
    wake::Hint hint{wake::Hint::Kind::kEventPublished, {}, {}};
    rig.wake.Signal({&hint, 1});
    EXPECT_TRUE(Eventually([&] {
        return !rig.memory.List({.filter = {.types = {"virus"}}, .before = {}}).tasks.empty();
    }));
    service.Stop();
}

// ---- what holds them up ----

std::string Said(const std::vector<EventObstacle>& obstacles) {
    std::string text;
    for (const EventObstacle& one : obstacles) {
        text += fmt::format(
            "{}|{}|{}|{}|{}|{}\n",
            one.event.valid() ? one.event.ToString() : "-",
            one.workflow,
            one.trigger,
            one.key,
            one.type,
            one.why
        );
    }
    return text;
}

TEST(EventExplain, NamesPendingFiringsThatNobodyServes) {
    EventRig rig(kMedia);
    EventNo no = rig.Publish("file.ingested", R"({"size":9})");
    EXPECT_THAT(Said(ExplainEvents(rig.store, {})), HasSubstr("no worker is running"));
    rig.Handle("other", [](Context&, std::string_view) { return Done(); });
    rig.Open();
    rig.Drive();
    std::string said = Said(ExplainEvents(rig.store, {.event = no, .tenant = {}}));
    EXPECT_THAT(
        said, HasSubstr(no.ToString() + "|content-analysis|virus||virus|no running worker")
    );
    rig.service.RunOnce();
    EXPECT_EQ(Said(ExplainEvents(rig.store, {})), "") << "it is done: the rest is the task's";
}

TEST(EventExplain, SaysWhyAnEventHasToWait) {
    EventRig rig(kSmall);
    rig.memory.SetQueue({.name = "small", .cap = 0}, "test");
    EventNo no = rig.Publish("e", "{}");
    rig.service.RunOnce();
    EXPECT_THAT(Said(ExplainEvents(rig.store, {})), HasSubstr(no.ToString() + "|||||"));
    EXPECT_THAT(Said(ExplainEvents(rig.store, {})), HasSubstr("full"));
    EXPECT_EQ(Said(ExplainEvents(rig.store, {.event = {}, .tenant = TenantId(2)})), "");
    rig.store.unreadable_workflow = "w";
    EXPECT_THAT(
        Said(ExplainEvents(rig.store, {})), HasSubstr("-|w||||this program cannot read it")
    );
}

TEST(EventExplain, NamesMembersOfJoinsThatNobodyServes) {
    EventRig rig(kJoin);
    rig.Handle("left", [](Context&, std::string_view) { return Done("1"); });
    rig.Handle("joined", [](Context&, std::string_view) { return Done("1"); });
    rig.Open();
    rig.Submit("left", {.input = R"({"file":"a"})"});
    rig.Drive();
    rig.service.RunOnce();
    EXPECT_EQ(
        Said(ExplainEvents(rig.store, {})),
        "-|w|both|a|right|no running worker handles tasks of type right, which is missing\n"
    );
}

}  // namespace
}  // namespace stint::services
