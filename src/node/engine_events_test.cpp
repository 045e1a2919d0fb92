#include <gmock/gmock.h>
#include <stint/stint.h>
#include <stint/testing.h>

#include <functional>
#include <optional>

namespace stint {

struct Look {
    std::string path;
    int size = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Look, path, size)

struct Ingested {
    std::string path;
    int size = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Ingested, path, size)

// Leaves out what is empty, and has members of many kinds.
struct Sparse {
    std::string note;
    std::vector<int> sizes;
    std::optional<Look> look;
    int count = 0;
};
void to_json(nlohmann::json& json, const Sparse& sparse) {
    json = nlohmann::json::object();
    if (!sparse.note.empty()) json["note"] = sparse.note;
    if (!sparse.sizes.empty()) json["sizes"] = sparse.sizes;
    if (sparse.look) json["look"] = *sparse.look;
    json["count"] = sparse.count;
}
void from_json(const nlohmann::json& json, Sparse& sparse) {
    if (json.contains("note")) json["note"].get_to(sparse.note);
    if (json.contains("sizes")) json["sizes"].get_to(sparse.sizes);
    if (json.contains("look")) sparse.look = json["look"].get<Look>();
    if (json.contains("count")) json["count"].get_to(sparse.count);
}

namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using namespace std::chrono_literals;

constexpr Task<Look, int> kMeasure{"measure"};
constexpr Task<Look, bool> kScan{"scan"};
constexpr Task<Json> kIndex{"index"};

Workflow Media() {
    Workflow flow("media");
    flow.On("ingested")
        .Match("size > 10")
        .Submit("measure", kMeasure, {{"path", "${path}"}, {"size", "${size}"}}, {.priority = 150});
    flow.On("ingested").Submit("scan", kScan);
    flow.Join("index", kMeasure, kScan)
        .By("input.path")
        .Policy(JoinPolicy::kLatest)
        .Within(1h)
        .Submit(kIndex);
    return flow;
}

TEST(EngineEvents, ATypedWorkflowIsAllThatATriggerNeeds) {
    testing::TestEngine engine;
    engine.Handle(kMeasure, [](Context&, const Look& look) { return look.size; });
    engine.Handle(kScan, [](Context&, const Look&) { return true; });
    std::string indexed;
    engine.Handle(kIndex, [&](Context&, const Json& input) { indexed = input.text; });
    auto put = engine.engine().PutWorkflow(Media());
    ASSERT_TRUE(put) << put.error().message;
    EXPECT_EQ(put->version, 1);
    auto event = engine.engine().Publish("ingested", Ingested{"a", 11});
    ASSERT_TRUE(event) << event.error().message;
    engine.RunUntilIdle();
    EXPECT_THAT(indexed, HasSubstr(R"("outputs":{"measure":11,"scan":true})"));
    EXPECT_EQ(engine.OfType("measure").at(0).priority, 150);
    EXPECT_EQ(engine.engine().GetEvent(*event)->state, "done");
    EXPECT_THAT(engine.engine().Firings(*event).value(), SizeIs(2));
    auto joins = engine.engine().Joins("media").value();
    ASSERT_THAT(joins, SizeIs(1));
    EXPECT_EQ(joins[0].state, "fired");
    EXPECT_EQ(joins[0].key, "a");
}

TEST(EngineEvents, TheSameEventAgainFiresNothing) {
    testing::TestEngine engine;
    engine.engine().PutWorkflow(Media()).value();
    PublishOptions once{.source = "s", .id = "1"};
    auto first = engine.engine().Publish("ingested", Ingested{"a", 1}, once);
    auto again = engine.engine().Publish("ingested", Ingested{"a", 1}, once);
    EXPECT_EQ(first.value(), again.value());
    engine.RunUntilIdle();
    engine.ExpectSubmitted(kScan, 1);
    auto other = engine.engine().Publish("ingested", Ingested{"b", 1}, once);
    EXPECT_EQ(other.error().code, Code::kConflict);
}

TEST(EngineEvents, AnInProcessEventFiresBeforePublishReturns) {
    testing::TestEngine engine;
    engine.engine().PutWorkflow(Media()).value();
    auto event = engine.engine().Publish("ingested", Ingested{"a", 1}, {.in_process = true});
    ASSERT_TRUE(event) << event.error().message;
    EXPECT_FALSE(event->valid());
    engine.ExpectSubmitted(kScan, 1);
}

TEST(EngineEvents, ACircleEndsWithARefusalThatTheHandlerSees) {
    testing::TestEngine engine;
    Workflow flow("circle");
    flow.On("e").Submit("again", kScan);
    engine.engine().PutWorkflow(flow).value();
    std::string refusal;
    engine.Handle(kScan, [&](Context& context, const Look&) {
        auto event = engine.engine().Publish("e", Ingested{}, {.by = &context});
        if (!event) refusal = event.error().message;
        return true;
    });
    engine.engine().Publish("e", Ingested{}).value();
    engine.RunUntilIdle();
    EXPECT_THAT(refusal, HasSubstr("17 events deep"));
    engine.ExpectSubmitted(kScan, 17);
}

TEST(EngineEvents, ACircleEndsThoughNobodySaysWhoPublishes) {
    for (bool in_process : {false, true}) {
        testing::TestEngine engine;
        Workflow flow("circle");
        flow.On("e").Submit("again", kScan);
        engine.engine().PutWorkflow(flow).value();
        std::string refusal;
        engine.Handle(kScan, [&](Context&, const Look&) {
            auto event = engine.engine().Publish("e", Ingested{}, {.in_process = in_process});
            if (!event) refusal = event.error().message;
            return true;
        });
        engine.engine().Publish("e", Ingested{}).value();
        engine.RunUntilIdle();
        EXPECT_THAT(refusal, HasSubstr("17 events deep"));
        engine.ExpectSubmitted(kScan, 17);
    }
}

TEST(EngineEvents, ACircleThroughTasksThatHandlersSubmitEnds) {
    testing::TestEngine engine;
    Workflow flow("circle");
    flow.On("e").Submit("again", kScan);
    engine.engine().PutWorkflow(flow).value();
    engine.Handle(kScan, [&](Context&, const Look& look) {
        engine.engine().Submit(kMeasure, look).value();
        return true;
    });
    std::string refusal;
    engine.Handle(kMeasure, [&](Context&, const Look&) {
        auto event = engine.engine().Publish("e", Ingested{});
        if (!event) refusal = event.error().message;
        return 1;
    });
    engine.engine().Publish("e", Ingested{}).value();
    engine.RunUntilIdle();
    EXPECT_THAT(refusal, HasSubstr("17 events deep"));
    engine.ExpectSubmitted(kScan, 17);
    engine.ExpectSubmitted(kMeasure, 17);
}

TEST(EngineEvents, ACircleThroughABatchEnds) {
    testing::TestEngine engine;
    Workflow flow("circle");
    flow.On("e").Submit("again", kScan);
    engine.engine().PutWorkflow(flow).value();
    engine.HandleBatch(kScan, 10, [&](std::span<const BatchItem<Look>> items) {
        (void)engine.engine().Publish("e", Ingested{});
        return std::vector<Outcome<bool>>(items.size(), true);
    });
    engine.engine().Publish("e", Ingested{}).value();
    engine.RunUntilIdle();
    engine.ExpectSubmitted(kScan, 17);
}

TEST(EngineEvents, ATaskOfAnotherStoreIsNoCause) {
    testing::TestEngine here, there;
    Workflow flow("once");
    flow.On("e").Submit("go", kScan);
    here.engine().PutWorkflow(flow).value();
    std::optional<EventNo> other;
    std::optional<EventNo> own;
    here.Handle(kScan, [&](Context&, const Look&) {
        other = there.engine().Publish("f", Ingested{}).value();
        own = here.engine().Publish("f", Ingested{}).value();
        return true;
    });
    here.engine().Publish("e", Ingested{}).value();
    here.RunUntilIdle();
    ASSERT_TRUE(own && other);
    EXPECT_EQ(here.engine().GetEvent(*own).value().depth, 1);
    EXPECT_EQ(there.engine().GetEvent(*other).value().depth, 0);
    // What is published when no handler runs follows from nothing.
    EventNo after = here.engine().Publish("f", Ingested{}).value();
    EXPECT_EQ(here.engine().GetEvent(after).value().depth, 0);
}

TEST(EngineEvents, ATaskIsNamedByItsId) {
    testing::TestEngine engine;
    Workflow flow("once");
    flow.On("e").Submit("go", kScan);
    engine.engine().PutWorkflow(flow).value();
    engine.Handle(kScan, [](Context&, const Look&) { return true; });
    EventNo first = engine.engine().Publish("e", Ingested{}).value();
    engine.RunUntilIdle();
    TaskId task = engine.engine().Firings(first).value().at(0).task;
    EventNo second = engine.engine().Publish("f", Ingested{}, {.by_task = task}).value();
    EXPECT_EQ(engine.engine().GetEvent(second).value().depth, 1);
}

TEST(EngineEvents, AnEventFinishesABackgroundTask) {
    constexpr Task<void, int> kPrint{"print"};
    testing::TestEngine engine;
    Workflow flow("print");
    flow.On("printed").Match("ok").Complete(
        "done", {.task = "${task}", .token = "${token}", .output = "${pages}"}
    );
    flow.On("printed").Match("NOT ok").Fail(
        "broken", {.task = "${task}", .message = "${why}", .retryable = false}
    );
    engine.engine().PutWorkflow(flow).value();
    nlohmann::json told;
    engine.Handle(kPrint, [&](Context& context) -> Outcome<int> {
        told = {{"task", context.id().ToString()}, {"token", context.completion_token()}};
        return Background{"printing", 1h};
    });
    auto run = engine.Submit(kPrint).value();
    engine.RunUntilIdle();
    told["ok"] = true;
    told["pages"] = 3;
    engine.engine().Publish("printed", told).value();
    EXPECT_EQ(run.Wait().value(), 3);

    auto second = engine.Submit(kPrint).value();
    engine.RunUntilIdle();
    told["ok"] = false;
    told["why"] = "no paper";
    engine.engine().Publish("printed", told).value();
    EXPECT_EQ(second.Wait().error().message, "no paper");
}

TEST(EngineEvents, AMemberThatTheInputDoesNotHaveIsAMistake) {
    Workflow flow("media");
    EXPECT_THROW(flow.On("e").Submit("a", kMeasure, {{"paht", "${path}"}}), std::invalid_argument);
}

TEST(EngineEvents, DefinitionsAsDataAreCheckedListedAndRemoved) {
    testing::TestEngine test;
    Engine& engine = test.engine();
    auto wrong = engine.PutWorkflowJson(
        R"({"name":"w","triggers":[{"name":"a","on":"e","match":"size >","submit":{"type":"t"}}]})"
    );
    ASSERT_FALSE(wrong);
    EXPECT_THAT(wrong.error().message, HasSubstr("triggers[0].match column 7"));
    engine.PutWorkflow(Media()).value();
    auto all = engine.Workflows().value();
    ASSERT_THAT(all, SizeIs(1));
    // What is listed can be put again.
    EXPECT_EQ(engine.PutWorkflowJson(all[0].definition)->version, 1);
    EXPECT_TRUE(engine.RemoveWorkflow("media").value());
    EXPECT_FALSE(engine.RemoveWorkflow("media").value());
}

TEST(EngineEvents, AnExpressionCanBeTried) {
    EXPECT_TRUE(Engine::Matches("size > 1", R"({"size":2})").value());
    EXPECT_FALSE(Engine::Matches("size > 1", R"({"size":1})").value());
    EXPECT_THAT(Engine::Matches("size >", "{}").error().message, HasSubstr("column 7"));
    EXPECT_THAT(
        Engine::Matches("size > 1", "{").error().message, HasSubstr("the event is not JSON")
    );
}

std::string Problem(const std::function<void(Workflow&)>& write) {
    Workflow flow("w");
    try {
        write(flow);
    } catch (const std::invalid_argument& wrong) {
        return wrong.what();
    }
    return {};
}

TEST(EngineEvents, AMemberThatIsLeftOutWhenItIsEmptyIsAMember) {
    constexpr Task<Sparse> kSparse{"sparse"};
    auto problem = [&](const InputMap& input) {
        return Problem([&](Workflow& flow) { flow.On("e").Submit("a", kSparse, input); });
    };
    EXPECT_EQ(problem({{"note", "${path}"}, {"sizes", "${sizes}"}, {"look", "${look}"}}), "");
    EXPECT_EQ(problem({{"sizes", {1, 2}}, {"look", {{"path", "${path}"}}}}), "");
    EXPECT_THAT(problem({{"nott", "${path}"}}), HasSubstr("has no member \"nott\""));
    EXPECT_THAT(problem({{"sizes", "many"}}), HasSubstr("that does not take \"many\""));
    EXPECT_THAT(problem({{"count", "n-${n}"}}), HasSubstr("does not take a text"));
}

TEST(EngineEvents, ATypedEventsFieldsAreCheckedWhereTheTriggerIsWritten) {
    auto problem = [&](const InputMap& input) {
        return Problem([&](Workflow& flow) {
            flow.On<Ingested>("ingested").Submit("a", kMeasure, input);
        });
    };
    EXPECT_EQ(problem({}), "");
    EXPECT_EQ(problem({{"path", "${path}"}, {"size", "${size}"}}), "");
    EXPECT_EQ(problem({{"path", "${$event.source}"}}), "");
    EXPECT_THAT(problem({{"path", "${pth}"}}), HasSubstr("has no field \"pth\""));
    EXPECT_THAT(problem({{"size", "${path}"}}), HasSubstr("does not take the event's field"));
    EXPECT_THAT(problem({{"size", "large"}}), HasSubstr("does not take \"large\""));
    constexpr Task<std::vector<int>> kNumbers{"numbers"};
    EXPECT_EQ(Problem([&](Workflow& flow) { flow.On("e").Submit("a", kNumbers); }), "");
}

TEST(EngineEvents, WhatHoldsEventsUpIsExplained) {
    testing::TestEngine engine;
    engine.engine().PutWorkflow(Media()).value();
    auto event = engine.engine().Publish("ingested", Ingested{"a", 11});
    auto obstacles = engine.engine().ExplainEvents(*event).value();
    ASSERT_FALSE(obstacles.empty());
    EXPECT_EQ(obstacles[0].event, *event);
    std::string types;
    for (const EventObstacle& one : obstacles) types += one.type + " ";
    EXPECT_THAT(types, HasSubstr("measure"));
}

TEST(EngineEvents, JoinsAreListedInPages) {
    testing::TestEngine engine;
    engine.Handle(kMeasure, [](Context&, const Look& look) { return look.size; });
    engine.engine().PutWorkflow(Media()).value();
    for (const char* path : {"a", "b"}) {
        engine.engine().Publish("ingested", Ingested{path, 11}).value();
        engine.RunUntilIdle();
    }
    auto all = engine.engine().Joins("media").value();
    ASSERT_THAT(all, SizeIs(2));
    auto older = engine.engine().Joins("media", all[0].no).value();
    ASSERT_THAT(older, SizeIs(1));
    EXPECT_EQ(older[0].key, "a");
}

}  // namespace
}  // namespace stint
