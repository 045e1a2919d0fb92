// What the suites about events and joins have in common.
#pragma once

#include "conformance/conformance.h"
#include "store/event_words.h"
#include "store/events.h"

namespace stint::conformance {

class EventConformance : public Conformance {
protected:
    EventStore& events = store.Events();

    PublishReply Publish(NewEvent event) {
        if (event.type.empty()) event.type = "file.ingested";
        return events.Publish({&event, 1}).at(0);
    }
    EventNo Happen(NewEvent event = {}) {
        PublishReply reply = Publish(std::move(event));
        EXPECT_EQ(reply.kind, PublishReply::Kind::kAccepted) << reply.message;
        return reply.no;
    }
    EventRecord Event(EventNo no) {
        auto record = events.GetEvent(no);
        EXPECT_TRUE(record.has_value());
        return record.value_or(EventRecord());
    }
    std::vector<EventNo> Next(NextEventsRequest request = {}) {
        std::vector<EventNo> numbers;
        for (const EventRecord& event : events.NextEvents(request).events) {
            numbers.push_back(event.no);
        }
        return numbers;
    }
    static Action Submits(NewTask task, const std::string& trigger = "first") {
        if (task.type.empty()) task.type = "t";
        return {.workflow = "w", .trigger = trigger, .version = 3, .what = std::move(task)};
    }
    static Action Finishes(Finishing what, const std::string& trigger = "first") {
        return {
            .workflow = "w",
            .trigger = trigger,
            .version = 1,
            .what = Action::Finish{std::move(what)}};
    }
    FireReply Fire(EventOutcome outcome) { return events.Fire({&outcome, 1}).at(0); }
    FireReply Fire(EventNo event, std::vector<Action> actions) {
        return Fire({.event = event, .actions = std::move(actions), .refusal = {}});
    }
    std::vector<FiringRecord> FiringsOf(EventNo event) {
        return events.Firings({.event = event, .task = {}, .workflow = {}});
    }
    std::size_t Tasks(const std::string& type = "t") { return ListAll({.types = {type}}).size(); }

    static WorkflowDefinition Definition(const std::string& name = "w") {
        WorkflowDefinition definition;
        definition.name = name;
        Trigger trigger;
        trigger.name = "first";
        trigger.on = "file.ingested";
        trigger.match = "size > 10";
        trigger.action = TaskTemplate{.type = "t", .input = R"({"file":"${path}"})"};
        definition.triggers.push_back(trigger);
        return definition;
    }

    // ---- joins ----

    static Join JoinOf(JoinPolicy policy) {
        Join join;
        join.name = "both";
        join.types = {"u", "v"};
        join.key = "input.key";
        join.policy = policy;
        join.ttl = 1h;
        join.submit.type = "joined";
        return join;
    }
    void PutJoin(JoinPolicy policy, const std::vector<std::string>& types = {"u", "v"}) {
        WorkflowDefinition definition;
        definition.name = "w";
        definition.joins.push_back(JoinOf(policy));
        definition.joins.front().types = types;
        ASSERT_TRUE(events.PutWorkflow(definition, "ann"));
        join_ = definition.joins.front();
    }
    // A task of the type is run to its end, which is an event.
    TaskId Finish(const std::string& type, const std::string& output) {
        TaskId id = Make({.type = type});
        Lease lease = ClaimOne();
        EXPECT_EQ(lease.task, id);
        Settlement outcome = Outcome(lease, Settlement::Kind::kComplete);
        outcome.output = output;
        EXPECT_EQ(Settle(outcome).kind, SettleReply::Kind::kAccepted);
        return id;
    }
    Action Arrives(TaskId task, const std::string& type, const std::string& key) {
        JoinArrival arrival;
        arrival.key = {kDefaultTenant, "w", join_.name, key};
        arrival.types = join_.types;
        arrival.policy = join_.policy;
        arrival.ttl = join_.ttl;
        arrival.submit = join_.submit;
        auto place = std::find(join_.types.begin(), join_.types.end(), type);
        arrival.part.member = static_cast<int>(place - join_.types.begin());
        arrival.part.type = type;
        arrival.part.task = task;
        arrival.part.output = Get(task).output;
        arrival.part.completed_at = store.Now();
        return {.workflow = "w", .trigger = join_.name, .version = 1, .what = std::move(arrival)};
    }
    // A member completes, and its event is processed.
    FiringRecord Arrive(const std::string& type, const std::string& key = "k") {
        TaskId task = Finish(type, R"({"from":")" + type + std::to_string(++arrivals_) + "\"}");
        std::vector<EventRecord> own = events.NextEvents({}).events;
        EXPECT_THAT(own, SizeIs(1));
        EXPECT_EQ(CompletedBy(own.at(0)), task);
        FireReply reply = Fire(own.at(0).no, {Arrives(task, type, key)});
        EXPECT_THAT(reply.fired, SizeIs(1));
        return reply.fired.at(0);
    }
    std::vector<JoinInstance> Rounds() { return events.Joins({}); }

    Join join_;
    int arrivals_ = 0;
};

#define EVENT_SUITE(name)                    \
    class name : public EventConformance {}; \
    INSTANTIATE_TEST_SUITE_P(Store, name, testing::ValuesIn(Backends()), &BackendName)

}  // namespace stint::conformance
