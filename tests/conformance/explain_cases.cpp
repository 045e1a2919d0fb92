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

TEST_P(ExplainCases, WithoutASessionItIsTheGeneralQuestion) {
    TaskId id = Make({.type = "whatever"});
    EXPECT_THAT(Why(id, {}), ElementsAre(Condition::kEligible));
    TaskId later = Make({.delay = 1h});
    EXPECT_THAT(Why(later, {}), ElementsAre(Condition::kNotDue));
}

TEST_P(ExplainCases, NobodyHasNoReasons) {
    EXPECT_THAT(store.Explain(store.ReserveIds(1), Claimer()), IsEmpty());
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
