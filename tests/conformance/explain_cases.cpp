// Explaining: the same conditions that the claim is made of. "Eligible" if and only if the next
// claim with room enough returns the task.
#include <set>

#include "conformance/conformance.h"

namespace stint::conformance {
namespace {

using Kind = Settlement::Kind;

class ExplainCases : public Conformance {
protected:
    ClaimRequest Claimer() {
        return {.session = Worker(), .limit = limits::kClaimBatch, .types = {"t", "u"}};
    }
    std::vector<Condition> Why(TaskId task, const ClaimRequest& claimer) {
        std::vector<Condition> conditions;
        for (const Explanation& reason : store.Explain(task, claimer))
            conditions.push_back(reason.condition);
        return conditions;
    }
    std::vector<Condition> Why(TaskId task) { return Why(task, Claimer()); }
};
INSTANTIATE_TEST_SUITE_P(Store, ExplainCases, testing::ValuesIn(Backends()), &BackendName);

TEST_P(ExplainCases, EachConditionAlone) {
    EXPECT_THAT(Why(Make()), ElementsAre(Condition::kEligible));
    EXPECT_THAT(Why(Make({.delay = 1h})), ElementsAre(Condition::kNotDue));
    EXPECT_THAT(Why(Make({.type = "x"})), ElementsAre(Condition::kTypeNotHandled));
    Make({.queue = "a"});
    ClaimRequest serves = Claimer();
    serves.queues = {"default"};
    EXPECT_THAT(Why(Make({.queue = "a"}), serves), ElementsAre(Condition::kQueueNotServed));
    store.SetQueue({.name = "p", .paused = true}, "ann");
    EXPECT_THAT(Why(Make({.queue = "p"})), ElementsAre(Condition::kQueuePaused));
    TaskId late = Make({.start_by = store.Now() + 1min});
    Advance(2min);
    EXPECT_THAT(Why(late), ElementsAre(Condition::kStartByPassed));
    ClaimRequest dead = Claimer();
    dead.session = random.MakeId<SessionId>();
    EXPECT_THAT(Why(Make(), dead), ElementsAre(Condition::kSessionNotLive));
}

TEST_P(ExplainCases, ASuspectMustBeAlone) {
    Lease lease = MakeClaimed();
    Crash(lease);
    Advance(1min);
    EXPECT_THAT(Why(lease.task), ElementsAre(Condition::kSuspectMustBeAlone));
    ClaimRequest alone = Claimer();
    alone.suspect = true;
    EXPECT_THAT(Why(lease.task, alone), ElementsAre(Condition::kEligible));
}

TEST_P(ExplainCases, OfATaskThatDoesNotWaitThereIsOneReason) {
    Lease lease = MakeClaimed({.type = "u"});
    ClaimRequest claimer = Claimer();
    claimer.types = {"t"};
    EXPECT_THAT(Why(lease.task, claimer), ElementsAre(Condition::kNotWaiting));
    EXPECT_THAT(store.Explain(lease.task, claimer).at(0).detail, HasSubstr("in_progress"));
    Complete(lease);
    EXPECT_THAT(Why(lease.task), ElementsAre(Condition::kNotWaiting));
    EXPECT_THAT(store.Explain(lease.task, claimer).at(0).detail, HasSubstr("complete"));
}

TEST_P(ExplainCases, AllReasonsAreNamed) {
    store.SetQueue({.name = "p", .paused = true}, "ann");
    TaskId id = Make({.type = "x", .queue = "p", .delay = 1h});
    ClaimRequest claimer = Claimer();
    claimer.queues = {"default"};
    EXPECT_THAT(
        Why(id, claimer),
        UnorderedElementsAre(
            Condition::kNotDue,
            Condition::kQueuePaused,
            Condition::kQueueNotServed,
            Condition::kTypeNotHandled
        )
    );
}

TEST_P(ExplainCases, DetailsNameTheQueueAndTheType) {
    store.SetQueue({.name = "p", .paused = true}, "ann");
    TaskId id = Make({.type = "x", .queue = "p"});
    for (const Explanation& reason : store.Explain(id, Claimer())) {
        EXPECT_THAT(
            reason.detail, HasSubstr(reason.condition == Condition::kQueuePaused ? "p" : "x")
        );
    }
}

TEST_P(ExplainCases, OfAnOrderKeyTheTaskInFrontIsNamed) {
    NewTask task{.type = "t"};
    task.order_key = "k";
    TaskId first = Make(task), second = Make(task), third = Make(task);
    auto detail = [&](TaskId of) { return store.Explain(of, Claimer()).at(0).detail; };
    EXPECT_EQ(detail(third), "order key \"k\", behind task " + first.ToString());
    Complete(ClaimOne());
    EXPECT_EQ(detail(third), "order key \"k\", behind task " + second.ToString());
}

TEST_P(ExplainCases, WithoutASessionItIsTheGeneralQuestion) {
    TaskId id = Make({.type = "whatever"});
    EXPECT_THAT(Why(id, {}), ElementsAre(Condition::kEligible));
    TaskId later = Make({.delay = 1h});
    EXPECT_THAT(Why(later, {}), ElementsAre(Condition::kNotDue));
}

TEST_P(ExplainCases, NobodyHasNoReasons) {
    EXPECT_THAT(store.Explain(store.ReserveIds(1), Claimer()), IsEmpty());
}

// ---- the place ----

TEST_P(ExplainCases, APlaceIsThatOfTheClaim) {
    TaskId reserved = store.ReserveIds(1);
    std::vector<TaskId> tasks;
    for (int i = 0; i < 30; ++i) {
        NewTask task{.type = i % 3 == 0 ? "u" : "t", .queue = i % 4 == 0 ? "a" : "default"};
        task.priority = i % 5 * 50;
        if (i % 7 == 0) task.type = "x";
        if (i % 6 == 5) task.delay = 1h;
        if (i == 20) task.id = reserved;  // the lowest id, and not the first place
        tasks.push_back(Make(task));
    }
    EXPECT_EQ(tasks[20], reserved);
    std::map<std::int64_t, TaskId> places;
    for (TaskId task : tasks) {
        Explanation one = store.Explain(task, Claimer()).at(0);
        if (one.condition != Condition::kEligible) continue;
        EXPECT_FALSE(one.more_ahead);
        EXPECT_TRUE(places.emplace(one.ahead, task).second) << "each has its own";
    }
    std::vector<TaskId> expected, claimed;
    for (const auto& [place, task] : places) expected.push_back(task);
    for (const Lease& lease : Claim(Claimer()).leases) claimed.push_back(lease.task);
    EXPECT_EQ(claimed, expected);
    EXPECT_EQ(places.rbegin()->first, static_cast<std::int64_t>(places.size()) - 1);
}

TEST_P(ExplainCases, APlaceIsCountedFarBehind) {
    MakeMany(1010, {.type = "t", .priority = 200});
    MakeMany(1020, {.type = "u"});
    MakeMany(1030, {.type = "t", .priority = 10});
    TaskId other = Make({.type = "t"});
    TaskId last = Make({.type = "u"});
    TaskId low = Make({.type = "u", .priority = 10});
    auto place = [&](TaskId task) { return store.Explain(task, Claimer()).at(0); };
    EXPECT_EQ(place(other).ahead, 1010 + 1020);
    EXPECT_EQ(place(last).ahead, 1010 + 1020 + 1);
    EXPECT_EQ(place(low).ahead, 1010 + 1020 + 2 + 1030);
    EXPECT_FALSE(place(low).more_ahead);
    ClaimRequest only = Claimer();
    only.types = {"u"};
    EXPECT_EQ(store.Explain(last, only).at(0).ahead, 1020);
}

TEST_P(ExplainCases, TheCrowdsOfAQueueAreCountedByWhatKeepsThem) {
    EXPECT_THAT(store.Crowds("default"), IsEmpty());
    MakeMany(3);
    TaskId plain = Make();
    Make({.queue = "other"});
    MakeMany(2, {.type = "t", .delay = 1h});
    TaskId later = Make({.delay = 2h});
    NewTask ordered{.type = "t"};
    ordered.order_key = "k";
    TaskId first = Make(ordered);
    MakeMany(4, ordered);
    TaskId behind = Make(ordered);
    NewTask needing{.type = "t"};
    needing.needs = Needs{{"gpu", 1}};
    TaskId needs = Make(needing);
    TaskId late = Make({.start_by = store.Now() + 1min});
    Lease tried = ClaimOne();
    SettleAs(tried, Kind::kRetry, 3h);
    Make({.type = "v"});
    ClaimOne({.types = {"v"}});
    Advance(2min);
    std::map<TaskId, std::int64_t> crowds;
    for (const Crowd& crowd : store.Crowds("default")) crowds[crowd.last] += crowd.tasks;
    EXPECT_EQ(crowds.at(needs), 1);
    EXPECT_EQ(crowds.at(late), 1);
    EXPECT_EQ(crowds.at(behind), 5);
    EXPECT_EQ(crowds.at(later), 4) << "two, itself, and the one that is tried again";
    // Whether the first of an order key stands with those that have none is the store's affair.
    std::int64_t ready = crowds[plain] + crowds[first];
    EXPECT_EQ(ready, 4) << "three of which one was tried, and both";
    std::int64_t all = 0;
    for (const auto& [last, count] : crowds) all += count;
    EXPECT_EQ(all, 15);
}

// The property: over random tasks in random situations, explain and claim agree on every one.
TEST_P(ExplainCases, EligibleIfAndOnlyIfTheNextClaimReturnsIt) {
    base::SeededRandom dice(20240229);
    auto one_of = [&](auto... values) {
        std::common_type_t<decltype(values)...> list[] = {values...};
        return list[dice.Below(sizeof...(values))];
    };
    store.SetQueue({.name = "paused", .paused = true}, "ann");
    std::size_t eligible_in_all = 0;
    for (int round = 0; round < 6; ++round) {
        std::vector<TaskId> ids;
        for (int i = 0; i < 40; ++i) {
            NewTask task{
                .type = one_of("t", "t", "u", "v", "x"),
                .queue = one_of("default", "default", "a", "paused"),
                .priority = static_cast<int>(dice.Below(256)),
            };
            if (dice.Below(4) == 0) task.delay = one_of(1h, 3h, 5h);
            if (dice.Below(5) == 0) task.start_by = store.Now() + one_of(2h, 4h, 6h);
            ids.push_back(Make(task));
        }
        // Some have been tried: failed, snoozed, released, crashed, cancelled, finished.
        SessionId crashing = OpenSession(30s);
        Kind kinds[] = {
            Kind::kRetry,
            Kind::kSnooze,
            Kind::kRelease,
            Kind::kComplete,
            Kind::kBackground,
            Kind::kDead};
        for (const Lease& lease : ClaimMany(12)) {
            SettleAs(lease, kinds[dice.Below(6)], one_of(0h, 1h, 3h));
        }
        ClaimMany(3, {.session = crashing});
        for (int i = 0; i < 3; ++i) Cancel(ids[dice.Below(ids.size())]);
        Advance(one_of(0h, 2h, 4h) + 1min);
        ReclaimAll();
        Advance(1min);
        store.SetQueue({.name = "a", .paused = dice.Below(2) == 0}, "ann");

        ClaimRequest claimer{
            .session = Worker(),
            .limit = limits::kClaimBatch,
            .queues = {},
            .types = {"t", "u"},
        };
        if (dice.Below(2) == 0) claimer.queues = {"default", "paused"};
        std::set<TaskId> eligible;
        for (const TaskRecord& task : ListAll()) {
            std::vector<Condition> why = Why(task.id, claimer);
            ASSERT_FALSE(why.empty());
            if (why == std::vector{Condition::kEligible}) eligible.insert(task.id);
        }
        std::set<TaskId> claimed;
        for (const Lease& lease : store.Claim(claimer).leases) claimed.insert(lease.task);
        EXPECT_EQ(claimed, eligible) << "round " << round;
        eligible_in_all += eligible.size();
    }
    EXPECT_GT(eligible_in_all, 30u);
}

}  // namespace
}  // namespace stint::conformance
