#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "model/event/event.h"
#include "model/event/join.h"
#include "model/event/template.h"
#include "model/event/workflow.h"

namespace stint::model {
namespace {

using base::Json;
using testing::HasSubstr;
using namespace std::chrono_literals;

Json J(std::string_view text) {
    Json json = base::ReadJson(text);
    EXPECT_FALSE(json.is_discarded()) << text;
    return json;
}

// ---- templates ---------------------------------------------------------------------------------

TEST(Template, APlaceAloneIsTheValueItself) {
    Json fields = J(R"({"n":3,"list":[1,{"a":true}],"o":{"x":"y"},"text":"t"})");
    auto filled = Fill(
        J(R"({"n":"${n}","o":"${o}","deep":["${list[1].a}"],"text":"${text}","none":"${no.where}"})"
        ),
        fields,
        limits::kInput
    );
    ASSERT_TRUE(filled) << filled.error().message;
    EXPECT_EQ(*filled, J(R"({"n":3,"o":{"x":"y"},"deep":[true],"text":"t","none":null})"));
}

TEST(Template, InsideATextItIsWrittenOut) {
    Json fields = J(R"({"n":3,"o":{"x":1},"text":"t"})");
    EXPECT_EQ(
        FillText("a-${n}-${text}-${gone}-${o}.png", fields, 100).value(), R"(a-3-t--{"x":1}.png)"
    );
    EXPECT_EQ(Fill("${n}${n}", fields, 100).value(), "33");
    EXPECT_EQ(FillText("${n}", fields, 100).value(), "3");
}

TEST(Template, ADollarSignCanBeMeant) {
    Json fields = J(R"({"n":3})");
    EXPECT_EQ(Fill("$${n}", fields, 100).value(), "${n}");
    EXPECT_EQ(Fill("$5 and ${n}$", fields, 100).value(), "$5 and 3$");
}

TEST(Template, NamesInQuotesMayHoldABrace) {
    EXPECT_EQ(Fill("${['a}b']}", J(R"({"a}b":7})"), 100).value(), 7);
}

// A quarter of a million places times a megabyte would be more than any machine has.
TEST(Template, FillingStopsAtTheLimit) {
    Json fields;
    fields["x"] = std::string(limits::kInput, 'x');
    std::string text;
    for (int i = 0; i < 60'000; ++i) text += "${x}";
    Json list = Json::array();
    for (int i = 0; i < 60'000; ++i) list.push_back("${x}");
    for (const Json& pattern : {Json(text), list}) {
        auto filled = Fill(pattern, fields, limits::kInput);
        ASSERT_FALSE(filled);
        EXPECT_EQ(filled.error().code, Code::kLimit);
        EXPECT_THAT(filled.error().message, HasSubstr("larger than the limit of 1048576 bytes"));
    }
    EXPECT_FALSE(FillText(text, fields, 100));
    auto task = MakeTask({.type = "t", .input = list.dump()}, fields, nullptr);
    ASSERT_FALSE(task);
    EXPECT_THAT(task.error().message, HasSubstr("input becomes larger"));
}

TEST(Template, WhatIsNotAFieldIsNamed) {
    auto check = [](std::string_view pattern) {
        auto good = CheckTemplate(Json::array({std::string(pattern)}));
        return good ? std::string() : good.error().message;
    };
    EXPECT_EQ(check("${a.b[0]} $${ ${c}"), "");
    EXPECT_THAT(check("x ${a"), HasSubstr("without its }"));
    EXPECT_THAT(check("${}"), HasSubstr("which is not a field"));
    EXPECT_THAT(check("${1}"), HasSubstr("expected one field"));
    EXPECT_THAT(check("${a = b}"), HasSubstr("expected one field"));
}

// ---- events ------------------------------------------------------------------------------------

TEST(EventFields, AreTheDataAndTheEvent) {
    EventRecord event;
    event.source = "s";
    event.id = "1";
    event.type = "a.b";
    event.data = R"({"size":3,"$event":"mine"})";
    Json fields = FieldsOf(event);
    EXPECT_EQ(fields["size"], 3);
    EXPECT_EQ(fields["$event"]["type"], "a.b");
    EXPECT_EQ(fields["$event"]["id"], "1");
    event.data = "[1,2]";
    EXPECT_EQ(FieldsOf(event)["$event"]["data"], J("[1,2]"));
    EXPECT_EQ(DataOf(FieldsOf(event)), J("[1,2]"));
    event.data = R"({"size":3})";
    EXPECT_EQ(DataOf(FieldsOf(event)), J(R"({"size":3})"));
}

TEST(EventValidation, NamesFieldValueAndCure) {
    auto problem = [](const NewEvent& event) {
        auto good = Validate(event);
        return good ? std::string() : good.error().message;
    };
    EXPECT_EQ(problem({.type = "a"}), "");
    EXPECT_THAT(problem({}), HasSubstr("type is empty; give it a name"));
    EXPECT_THAT(problem({.type = "stint.x"}), HasSubstr("choose another"));
    EXPECT_THAT(problem({.type = "a", .data = "{"}), HasSubstr("data is not JSON"));
    EXPECT_THAT(problem({.source = "a\nb", .type = "a"}), HasSubstr("source"));
    EXPECT_THAT(problem({.id = std::string(257, 'x'), .type = "a"}), HasSubstr("the limit is 256"));
    EXPECT_THAT(
        problem({.type = "a", .data = '"' + std::string(limits::kInput, 'x') + '"'}),
        HasSubstr("pass a reference")
    );
}

// ---- definitions -------------------------------------------------------------------------------

constexpr std::string_view kWhole = R"({
  "name": "content-analysis",
  "triggers": [
    {"name": "id3", "on": "file.ingested", "match": "mimeType = 'audio/mpeg'",
     "submit": {"type": "id3.extract", "input": {"file": "${path}"}, "queue": "audio",
                "priority": 150, "timeout": "5m", "delay": "1s", "tags": ["a"],
                "unique_key": "id3-${path}",
                "retry": {"kind": "fixed", "max_attempts": 3, "first_delay_ms": 1000}}},
    {"name": "done", "on": "printer.done",
     "complete": {"task": "${job.task}", "token": "${job.token}", "output": {"pages": "${n}"}}},
    {"name": "broken", "on": "printer.broken",
     "fail": {"task": "${job.task}", "message": "${why}", "retryable": false}}
  ],
  "joins": [
    {"name": "index", "types": ["id3.extract", "ocr"], "key": "input.file", "policy": "latest",
     "ttl": "1d", "submit": {"type": "index.build"}}
  ]})";

TEST(Workflow, IsReadAndWrittenAsJson) {
    auto definition = WorkflowFromJson(kWhole);
    ASSERT_TRUE(definition) << definition.error().message;
    ASSERT_EQ(definition->triggers.size(), 3u);
    const auto& task = std::get<TaskTemplate>(definition->triggers[0].action);
    EXPECT_EQ(task.priority, 150);
    EXPECT_EQ(task.timeout, 5min);
    EXPECT_EQ(task.retry->max_attempts, 3);
    EXPECT_FALSE(std::get<FinishTemplate>(definition->triggers[2].action).retryable);
    EXPECT_EQ(definition->joins[0].policy, JoinPolicy::kLatest);
    EXPECT_EQ(definition->joins[0].ttl, 24h);
    auto again = WorkflowFromJson(WorkflowToJson(*definition, 2));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(*again, *definition);
}

TEST(Workflow, WhatIsWrongIsNamedWithItsPlace) {
    auto problem = [](std::string_view from, std::string_view to) {
        std::string text(kWhole);
        std::size_t at = text.find(from);
        EXPECT_NE(at, text.npos) << from;
        text.replace(at, from.size(), to);
        auto definition = WorkflowFromJson(text);
        return definition ? std::string("nothing") : definition.error().message;
    };
    EXPECT_THAT(
        problem("\"priority\"", "\"prioritty\""),
        HasSubstr("triggers[0].submit.prioritty is not known here; do you mean priority?")
    );
    EXPECT_THAT(problem("150", "999"), HasSubstr("triggers[0].submit.priority is 999"));
    EXPECT_THAT(problem("'audio/mpeg'", ""), HasSubstr("triggers[0].match column 12"));
    EXPECT_THAT(problem("${path}", "${path"), HasSubstr("triggers[0].submit.input has ${"));
    EXPECT_THAT(problem("\"5m\"", "\"5 apples\""), HasSubstr("triggers[0].submit.timeout"));
    EXPECT_THAT(problem("\"done\"", "\"id3\""), HasSubstr("which another trigger or join"));
    EXPECT_THAT(problem("\"index\"", "\"id3\""), HasSubstr("joins[0].name"));
    EXPECT_THAT(problem("\"printer.done\"", "\"stint.x\""), HasSubstr("declare a join"));
    EXPECT_THAT(problem("\"latest\"", "\"newest\""), HasSubstr("use once, each or latest"));
    EXPECT_THAT(problem("[\"id3.extract\", \"ocr\"]", "[\"ocr\"]"), HasSubstr("a join has 2 to"));
    EXPECT_THAT(problem("\"ocr\"", "\"id3.extract\""), HasSubstr("twice"));
    EXPECT_THAT(problem("input.file", "input = 1"), HasSubstr("joins[0].key"));
    EXPECT_THAT(problem("\"1d\"", "\"0s\""), HasSubstr("joins[0].ttl"));
    EXPECT_THAT(
        problem("\"complete\"", "\"compleat\""),
        HasSubstr("triggers[1].compleat is not known here; do you mean complete?")
    );
    EXPECT_THAT(
        WorkflowFromJson(R"({"name":"w","triggers":[{"name":"a","on":"e"}]})").error().message,
        HasSubstr("triggers[0] needs one of submit, complete and fail")
    );
    EXPECT_THAT(
        problem("\"task\": \"${job.task}\", \"token\"", "\"token\""),
        HasSubstr("name the field that holds the task's id")
    );
    EXPECT_THAT(problem("content-analysis", ""), HasSubstr("name is empty"));
}

TEST(Workflow, MakesTheTaskFromTheEventsFields) {
    auto definition = WorkflowFromJson(kWhole);
    ASSERT_TRUE(definition);
    Json fields = J(R"({"path":"/a","$event":{}})");
    NewTask task =
        MakeTask(std::get<TaskTemplate>(definition->triggers[0].action), fields, DataOf(fields))
            .value();
    EXPECT_EQ(task.type, "id3.extract");
    EXPECT_EQ(task.input, R"({"file":"/a"})");
    EXPECT_EQ(task.unique_key, "id3-/a");
    EXPECT_EQ(task.queue, "audio");
    EXPECT_EQ(task.delay, 1s);
    // Without a template the event's data is the input.
    EXPECT_EQ(MakeTask({.type = "t"}, fields, DataOf(fields))->input, R"({"path":"/a"})");
}

TEST(Workflow, MakesTheFinishFromTheEventsFields) {
    auto definition = WorkflowFromJson(kWhole);
    ASSERT_TRUE(definition);
    const auto& finish = std::get<FinishTemplate>(definition->triggers[1].action);
    LeaseToken token(1, 2);
    Json fields = J(R"({"job":{"task":"12"},"n":3,"$event":{}})");
    fields["job"]["token"] = token.ToString();
    auto made = MakeFinishing(finish, fields);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->task, TaskId(12));
    EXPECT_EQ(made->token, token);
    EXPECT_EQ(made->output, R"({"pages":3})");
    fields["job"]["task"] = 12;  // a number will do
    EXPECT_TRUE(MakeFinishing(finish, fields));
    fields["job"].erase("token");
    EXPECT_THAT(MakeFinishing(finish, fields).error().message, HasSubstr("no completion token"));
    fields.erase("job");
    EXPECT_THAT(MakeFinishing(finish, fields).error().message, HasSubstr("names no task"));
}

// ---- joins -------------------------------------------------------------------------------------

// Whatever order members come in, and however often: a round fires once, with one of each.
TEST(JoinModel, EveryRoundFiresOnceWithOneOfEachMember) {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        base::SeededRandom random(seed);
        JoinArrival arrival;
        for (std::uint64_t i = 2 + random.Below(4); i > 0; --i) {
            arrival.types.push_back("t" + std::to_string(i));
        }
        arrival.policy = static_cast<JoinPolicy>(random.Below(3));
        arrival.ttl = 1h;
        std::optional<JoinInstance> newest;
        std::vector<int> waiting(arrival.types.size(), 0);  // since the last firing
        int fired = 0;
        for (int n = 1; n <= 60; ++n) {
            arrival.part.member = static_cast<int>(random.Below(arrival.types.size()));
            arrival.part.type = arrival.types[static_cast<std::size_t>(arrival.part.member)];
            arrival.part.task = TaskId(n);
            auto& since = waiting[static_cast<std::size_t>(arrival.part.member)];
            if (since == 0 || arrival.policy == JoinPolicy::kLatest) since = n;
            JoinStep step = Arrive(newest, arrival, Time{});
            bool complete = std::find(waiting.begin(), waiting.end(), 0) == waiting.end();
            bool may_fire = arrival.policy != JoinPolicy::kOnce || fired == 0;
            ASSERT_EQ(step.kind == JoinStep::Kind::kFull, complete && may_fire) << seed;
            if (!step.changed.empty()) newest = step.changed.back();
            if (step.kind != JoinStep::Kind::kFull) continue;
            ++fired;
            ASSERT_EQ(newest->generation, fired);
            ASSERT_EQ(newest->parts.size(), arrival.types.size());
            for (const JoinPart& part : newest->parts) {
                ASSERT_EQ(part.task.value(), waiting[static_cast<std::size_t>(part.member)]);
            }
            newest->state = JoinState::kFired;
            std::fill(waiting.begin(), waiting.end(), 0);
        }
    }
}

JoinArrival Arrival(std::vector<std::string> types, const std::string& type, std::int64_t task) {
    JoinArrival arrival;
    arrival.types = std::move(types);
    arrival.ttl = 1h;
    arrival.part.type = type;
    arrival.part.task = TaskId(task);
    auto place = std::find(arrival.types.begin(), arrival.types.end(), type);
    arrival.part.member = static_cast<int>(place - arrival.types.begin());
    return arrival;
}

TEST(JoinModel, AnEditedJoinKnowsItsMembersByTheirTypes) {
    auto first = Arrive({}, Arrival({"a", "b"}, "a", 1), Time{}).changed.at(0);
    // Another member in the place of one that is complete.
    JoinStep other = Arrive(first, Arrival({"c", "b"}, "b", 2), Time{});
    EXPECT_EQ(other.kind, JoinStep::Kind::kCounted);
    ASSERT_EQ(other.changed.at(0).parts.size(), 1u);
    EXPECT_EQ(other.changed[0].parts[0].type, "b");
    EXPECT_EQ(other.changed[0].mask, 2u);
    // The same ones at other places.
    JoinStep more = Arrive(first, Arrival({"x", "a", "b"}, "x", 2), Time{});
    EXPECT_EQ(more.kind, JoinStep::Kind::kCounted);
    EXPECT_EQ(more.changed.at(0).mask, 3u);
    JoinStep last = Arrive(more.changed[0], Arrival({"x", "a", "b"}, "b", 3), Time{});
    EXPECT_EQ(last.kind, JoinStep::Kind::kFull);
    EXPECT_EQ(FieldsOf(last.changed.at(0))["tasks"], J(R"({"x":"2","a":"1","b":"3"})"));
    // All that were missing were taken out: the next that comes finds it complete.
    auto two = Arrive(first, Arrival({"a", "b", "c"}, "b", 2), Time{}).changed.at(0);
    JoinStep fewer = Arrive(two, Arrival({"a", "b"}, "b", 4), Time{});
    EXPECT_EQ(fewer.kind, JoinStep::Kind::kFull);
    EXPECT_EQ(FieldsOf(fewer.changed.at(0))["tasks"], J(R"({"a":"1","b":"2"})"));
}

TEST(EventModel, TheTimeLiesInTheYearsThatStoresKnow) {
    auto why = [](std::optional<Time> time) {
        auto good = Validate(NewEvent{.type = "e", .time = time});
        return good ? std::string() : good.error().message;
    };
    EXPECT_EQ(why({}), "");
    EXPECT_EQ(why(Time{}), "");
    EXPECT_THAT(why(Time::max()), HasSubstr("time is "));
    EXPECT_THAT(why(Time{-1s}), HasSubstr("must lie in the years 1970 to 9999"));
}

}  // namespace
}  // namespace stint::model
