// Joins. Complete members reach them as events of the engine's own; a round fires once, when all of
// its members are there, in one transaction with the task that it makes.
#include "conformance/event_suite.h"

namespace stint::conformance {
namespace {

using Fired = FiringRecord::Kind;

EVENT_SUITE(Joins);

TEST_P(Joins, OnlyMembersCompletionsAreEvents) {
    PutJoin(JoinPolicy::kEach);
    Finish("t", "1");
    Lease lease = MakeClaimed({.type = "u", .retry = Fixed(1, 1s)});
    Settlement failed = Outcome(lease, Settlement::Kind::kDead);
    failed.error = Failure(false);
    Settle(failed);
    EXPECT_THAT(Next(), IsEmpty());
    TaskId done = Finish("u", "1");
    std::vector<EventRecord> own = events.NextEvents({}).events;
    ASSERT_THAT(own, SizeIs(1));
    EXPECT_EQ(own[0].type, kTaskComplete);
    EXPECT_EQ(CompletedBy(own[0]), done);
    events.RemoveWorkflow(kDefaultTenant, "w");
    Finish("v", "1");
    EXPECT_THAT(Next(), IsEmpty());
}

TEST_P(Joins, EveryWayToCompleteIsAnEvent) {
    PutJoin(JoinPolicy::kEach);
    Lease plain = MakeClaimed({.type = "u"});
    Settlement warned = Outcome(plain, Settlement::Kind::kComplete);
    warned.warning = true;
    warned.reason = "look at it";
    Settle(warned);
    Lease outside = MakeClaimed({.type = "v"});
    SettleAs(outside, Settlement::Kind::kBackground);
    ASSERT_TRUE(store.FinishBackground({.task = outside.task, .token = outside.token}));
    std::vector<TaskId> told;
    for (const EventRecord& event : events.NextEvents({}).events) {
        told.push_back(CompletedBy(event));
    }
    EXPECT_THAT(told, ElementsAre(plain.task, outside.task));
}

TEST_P(Joins, FireWhenAllMembersAreThereWithTheirOutputs) {
    PutJoin(JoinPolicy::kEach);
    FiringRecord first = Arrive("u");
    EXPECT_EQ(first.kind, Fired::kJoined);
    EXPECT_FALSE(first.task.valid());
    ASSERT_THAT(Rounds(), SizeIs(1));
    EXPECT_EQ(Rounds()[0].state, JoinState::kOpen);
    EXPECT_EQ(Rounds()[0].mask, 1u);
    EXPECT_EQ(Tasks("joined"), 0u);

    FiringRecord second = Arrive("v");
    ASSERT_TRUE(second.task.valid());
    base::Json input = base::ReadJson(Get(second.task).input);
    EXPECT_EQ(input["key"], "k");
    EXPECT_EQ(input["generation"], 1);
    EXPECT_EQ(input["outputs"], base::ReadJson(R"({"u":{"from":"u1"},"v":{"from":"v2"}})"));
    EXPECT_EQ(input["tasks"]["u"], Rounds()[0].parts[0].task.ToString());
    EXPECT_EQ(input["tasks"]["v"], Rounds()[0].parts[1].task.ToString());
    EXPECT_EQ(AuditOf(second.task).front().actor, "trigger:w/both");
    EXPECT_EQ(Rounds()[0].state, JoinState::kFired);
    EXPECT_EQ(Rounds()[0].task, second.task);
    EXPECT_EQ(Rounds()[0].mask, 3u);
}

TEST_P(Joins, KeysAreApart) {
    PutJoin(JoinPolicy::kEach);
    Arrive("u", "a");
    EXPECT_FALSE(Arrive("v", "b").task.valid());
    EXPECT_TRUE(Arrive("v", "a").task.valid());
    EXPECT_THAT(Rounds(), SizeIs(2));
}

TEST_P(Joins, ASecondOfOneMemberIsAbsorbedInItsRound) {
    PutJoin(JoinPolicy::kEach);
    Arrive("u");
    EXPECT_EQ(Arrive("u").kind, Fired::kAbsorbed);
    TaskId task = Arrive("v").task;
    EXPECT_EQ(base::ReadJson(Get(task).input)["outputs"]["u"]["from"], "u1");
    EXPECT_EQ(Tasks("joined"), 1u);
}

TEST_P(Joins, LatestTakesTheLastOfEachMember) {
    PutJoin(JoinPolicy::kLatest);
    Arrive("u");
    EXPECT_EQ(Arrive("u").kind, Fired::kJoined);
    TaskId task = Arrive("v").task;
    EXPECT_EQ(base::ReadJson(Get(task).input)["outputs"]["u"]["from"], "u2");
    ASSERT_THAT(Rounds(), SizeIs(1));
    EXPECT_THAT(Rounds()[0].parts, SizeIs(2));
}

TEST_P(Joins, EachBeginsANewRoundAfterItHasFired) {
    PutJoin(JoinPolicy::kEach);
    Arrive("u");
    Arrive("v");
    EXPECT_FALSE(Arrive("v").task.valid());
    TaskId second = Arrive("u").task;
    ASSERT_TRUE(second.valid());
    EXPECT_EQ(base::ReadJson(Get(second).input)["generation"], 2);
    EXPECT_EQ(base::ReadJson(Get(second).input)["outputs"]["u"]["from"], "u4");
    EXPECT_EQ(Tasks("joined"), 2u);
    ASSERT_THAT(Rounds(), SizeIs(2));
    EXPECT_EQ(Rounds()[0].generation, 2);
}

TEST_P(Joins, AGenerationComesOnceThoughItsRoundIsForgotten) {
    for (JoinPolicy policy : {JoinPolicy::kEach, JoinPolicy::kLatest}) {
        PutJoin(policy);
        std::set<int> generations;
        for (int again = 0; again < 3; ++again) {
            for (int round = 0; round < 2; ++round) {
                Arrive("u");
                TaskId task = Arrive("v").task;
                ASSERT_TRUE(task.valid());
                int generation = base::ReadJson(Get(task).input)["generation"].get<int>();
                EXPECT_TRUE(generations.insert(generation).second) << generation;
                EXPECT_EQ(generation, *generations.rbegin());
            }
            Advance(limits::kEventRetention + 1h);
            while (events.Tidy({}).more) continue;
            ASSERT_THAT(Rounds(), IsEmpty());
        }
        EXPECT_THAT(generations, SizeIs(6));
    }
    // One that expired, too, and the key of a join that was taken out and put again.
    Arrive("u");
    int expired = Rounds()[0].generation;
    Advance(limits::kEventRetention + 3h);
    events.Tidy({});
    Advance(limits::kEventRetention + 1h);
    while (events.Tidy({}).more) continue;
    ASSERT_THAT(Rounds(), IsEmpty());
    EXPECT_TRUE(events.RemoveWorkflow(kDefaultTenant, "w"));
    PutJoin(JoinPolicy::kOnce);
    Arrive("u");
    EXPECT_GT(Rounds()[0].generation, expired);
}

TEST_P(Joins, OnceAbsorbsWhatComesAfterwards) {
    PutJoin(JoinPolicy::kOnce);
    Arrive("u");
    Arrive("v");
    EXPECT_EQ(Arrive("u").kind, Fired::kAbsorbed);
    EXPECT_EQ(Arrive("v").kind, Fired::kAbsorbed);
    EXPECT_EQ(Tasks("joined"), 1u);
    EXPECT_THAT(Rounds(), SizeIs(1));
}

TEST_P(Joins, OnceIsOnceAsLongAsTheJoinIsThere) {
    PutJoin(JoinPolicy::kOnce);
    Arrive("u");
    ASSERT_TRUE(Arrive("v").task.valid());
    Advance(limits::kEventRetention + 1h);
    while (events.Tidy({}).more) continue;
    EXPECT_THAT(Rounds(), IsEmpty());
    EXPECT_EQ(Arrive("u").kind, Fired::kAbsorbed);
    EXPECT_EQ(Arrive("v").kind, Fired::kAbsorbed);
    EXPECT_THAT(Rounds(), IsEmpty());
    // Another policy, or a workflow that was removed, begins anew.
    PutJoin(JoinPolicy::kEach);
    Arrive("u");
    EXPECT_TRUE(Arrive("v").task.valid());
    PutJoin(JoinPolicy::kOnce);
    Arrive("u", "l");
    ASSERT_TRUE(Arrive("v", "l").task.valid());
    ASSERT_TRUE(events.RemoveWorkflow(kDefaultTenant, "w"));
    PutJoin(JoinPolicy::kOnce);
    Advance(limits::kEventRetention + 1h);
    while (events.Tidy({}).more) continue;
    Arrive("u", "l");
    EXPECT_TRUE(Arrive("v", "l").task.valid());
}

TEST_P(Joins, AnEditedJoinKnowsItsMembersByTheirTypes) {
    PutJoin(JoinPolicy::kEach);
    Arrive("u");
    // Another type in the place of one that is complete.
    PutJoin(JoinPolicy::kEach, {"t", "v"});
    EXPECT_FALSE(Arrive("v").task.valid());
    ASSERT_THAT(Rounds(), SizeIs(1));
    ASSERT_THAT(Rounds()[0].parts, SizeIs(1));
    EXPECT_EQ(Rounds()[0].parts[0].type, "v");
    // The same type at another place.
    PutJoin(JoinPolicy::kEach, {"v", "u", "t"});
    EXPECT_FALSE(Arrive("u").task.valid());
    TaskId joined = Arrive("t").task;
    ASSERT_TRUE(joined.valid());
    base::Json outputs = base::ReadJson(Get(joined).input)["outputs"];
    EXPECT_EQ(
        outputs, base::ReadJson(R"({"v":{"from":"v2"},"u":{"from":"u3"},"t":{"from":"t4"}})")
    );
    ASSERT_THAT(Rounds(), SizeIs(1));
    EXPECT_THAT(Rounds()[0].parts, SizeIs(3));
}

TEST_P(Joins, RoundsAreListedInPages) {
    PutJoin(JoinPolicy::kEach);
    for (const char* key : {"a", "b", "c", "d", "e"}) Arrive("u", key);
    std::string keys;
    JoinFilter filter{.workflow = "w", .states = {JoinState::kOpen}, .limit = 2};
    for (int page = 0; page < 5; ++page) {
        std::vector<JoinInstance> rounds = events.Joins(filter);
        if (rounds.empty()) break;
        for (const JoinInstance& round : rounds) keys += round.key.key;
        filter.before = rounds.back().no;
    }
    EXPECT_EQ(keys, "edcba");
}

TEST_P(Joins, AnIncompleteRoundExpiresVisibly) {
    PutJoin(JoinPolicy::kEach);
    Arrive("u");
    Advance(59min);
    EXPECT_THAT(events.Tidy({}).expired, IsEmpty());
    Advance(2min);
    std::vector<JoinInstance> expired = events.Tidy({}).expired;
    ASSERT_THAT(expired, SizeIs(1));
    EXPECT_EQ(expired[0].key.key, "k");
    EXPECT_THAT(events.Tidy({}).expired, IsEmpty());
    ASSERT_THAT(Rounds(), SizeIs(1));
    EXPECT_EQ(Rounds()[0].state, JoinState::kExpired);
    EXPECT_THAT(Rounds()[0].message, HasSubstr("only these were: u"));
    EXPECT_TRUE(Rounds()[0].ended_at.has_value());
    EXPECT_THAT(events.Joins({.workflow = "w", .states = {JoinState::kExpired}}), SizeIs(1));
    EXPECT_THAT(events.Joins({.workflow = "w", .states = {JoinState::kOpen}}), IsEmpty());
    Advance(limits::kEventRetention + 1h);
    EXPECT_EQ(events.Tidy({}).forgotten_joins, 1);
    EXPECT_THAT(Rounds(), IsEmpty());
}

TEST_P(Joins, ALateMemberDoesNotCompleteARoundThatIsOver) {
    PutJoin(JoinPolicy::kEach);
    Arrive("u");
    Advance(61min);
    EXPECT_FALSE(Arrive("v").task.valid());
    ASSERT_THAT(Rounds(), SizeIs(2));
    EXPECT_EQ(Rounds()[0].generation, 2);
    EXPECT_EQ(Rounds()[0].state, JoinState::kOpen);
    EXPECT_EQ(Rounds()[1].state, JoinState::kExpired);
    EXPECT_TRUE(Arrive("u").task.valid());
}

TEST_P(Joins, AFullQueueLeavesTheRoundAsItWas) {
    PutJoin(JoinPolicy::kEach);
    join_.submit.queue = "small";
    store.SetQueue({.name = "small", .cap = 0}, "ann");
    Arrive("u");
    TaskId last = Finish("v", "2");
    EventNo no = Next().at(0);
    EXPECT_TRUE(Fire(no, {Arrives(last, "v", "k")}).pending);
    EXPECT_EQ(Rounds()[0].state, JoinState::kOpen);
    EXPECT_EQ(Rounds()[0].mask, 1u);
    store.SetQueue({.name = "small", .cap = 1}, "ann");
    EXPECT_FALSE(Fire(no, {Arrives(last, "v", "k")}).pending);
    EXPECT_EQ(Rounds()[0].state, JoinState::kFired);
    EXPECT_EQ(Tasks("joined"), 1u);
}

TEST_P(Joins, ATaskThatCannotBeMadeIsARefusedRound) {
    PutJoin(JoinPolicy::kEach);
    join_.submit.unique_key = std::string(limits::kKey + 1, 'x');
    Arrive("u");
    FiringRecord record = Arrive("v");
    EXPECT_EQ(record.kind, Fired::kRefused);
    EXPECT_EQ(Rounds()[0].state, JoinState::kRefused);
    EXPECT_THAT(Rounds()[0].message, HasSubstr("unique_key"));
}

TEST_P(Joins, BothMembersInOneCallFireOnce) {
    PutJoin(JoinPolicy::kEach);
    TaskId u = Finish("u", "1");
    TaskId v = Finish("v", "2");
    std::vector<EventNo> own = Next();
    ASSERT_THAT(own, SizeIs(2));
    std::vector<EventOutcome> both = {
        {.event = own[0], .actions = {Arrives(u, "u", "k")}, .refusal = {}},
        {.event = own[1], .actions = {Arrives(v, "v", "k")}, .refusal = {}}};
    std::vector<FireReply> replies = events.Fire(both);
    EXPECT_FALSE(replies[0].fired.at(0).task.valid());
    EXPECT_TRUE(replies[1].fired.at(0).task.valid());
    EXPECT_THAT(Rounds(), SizeIs(1));
}

TEST_P(Joins, WhatComesBehindACompletionInOneCallWaitsForItsEnd) {
    PutJoin(JoinPolicy::kEach);
    Arrive("u");
    TaskId v = Finish("v", "2");
    TaskId next = Finish("v", "3");
    std::vector<EventNo> own = Next();
    std::vector<EventOutcome> both = {
        {.event = own[0], .actions = {Arrives(v, "v", "k")}, .refusal = {}},
        {.event = own[1], .actions = {Arrives(next, "v", "k")}, .refusal = {}}};
    std::vector<FireReply> replies = events.Fire(both);
    EXPECT_TRUE(replies[0].fired.at(0).task.valid());
    EXPECT_TRUE(replies[1].pending);
    EXPECT_FALSE(Fire(both[1]).pending);
    ASSERT_THAT(Rounds(), SizeIs(2));
    EXPECT_EQ(Rounds()[0].generation, 2);
}

TEST_P(Joins, TheViewShowsTheMembersOfOpenRounds) {
    if (!GetParam().has_views) GTEST_SKIP() << "no views";
    PutJoin(JoinPolicy::kEach);
    Arrive("u", "a");
    Arrive("u", "b");
    Arrive("v", "b");
    ViewRows view = fixture_->ReadView("task_joins");
    ASSERT_THAT(view.rows, SizeIs(1));
    EXPECT_EQ(view.rows[0][0], "a");
    EXPECT_EQ(view.rows[0][1], "w/both");
    EXPECT_EQ(view.rows[0][2], "u");
    EXPECT_EQ(view.rows[0][3], Rounds().back().parts[0].task.value());
}

TEST_P(Joins, AJoinsTaskIsAsDeepAsItsMembers) {
    PutJoin(JoinPolicy::kEach);
    TaskId u = Fire(Happen(), {Submits({.type = "u"})}).fired.at(0).task;
    Complete(ClaimOne());
    EventRecord own = events.NextEvents({}).events.at(0);
    EXPECT_EQ(CompletedBy(own), u);
    EXPECT_EQ(own.depth, 1);
}

}  // namespace
}  // namespace stint::conformance
