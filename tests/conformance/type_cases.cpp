// Task types. Workers publish defaults; a submit resolves explicit, then registered, then global. A
// task of an unknown type is accepted, flagged, and gets the defaults it lacks at the next
// publication of its type while it waits. Later changes of the defaults do not touch tasks that
// were resolved.
#include "conformance/conformance.h"

namespace stint::conformance {
namespace {

class TypeCases : public Conformance {
protected:
    void Publish(const TypeDefaults& defaults) { store.PublishTypes({&defaults, 1}); }
    TypeDefaults Defaults() {
        return {.type = "t", .queue = "q", .priority = 9, .retry = Fixed(3, 1min), .timeout = 5min};
    }
};
INSTANTIATE_TEST_SUITE_P(Store, TypeCases, testing::ValuesIn(Backends()), &BackendName);

TEST_P(TypeCases, PublishedTypesAreListedWithARevision) {
    EXPECT_THAT(store.Types(), IsEmpty());
    TypeDefaults isolated = Defaults();
    isolated.isolated = true;
    Publish(isolated);
    std::vector<TypeRecord> types = store.Types();
    ASSERT_THAT(types, SizeIs(1));
    EXPECT_EQ(types[0].defaults, isolated);
    EXPECT_EQ(types[0].revision, 1);
    EXPECT_TRUE(Near(types[0].updated_at, store.Now()));
}

TEST_P(TypeCases, TheRevisionGrowsOnlyWithAChange) {
    Publish(Defaults());
    Advance(1h);
    Publish(Defaults());
    EXPECT_EQ(store.Types().at(0).revision, 1);
    EXPECT_TRUE(Near(store.Types().at(0).updated_at, store.Now() - 1h));
    TypeDefaults changed = Defaults();
    changed.priority = 10;
    Publish(changed);
    EXPECT_EQ(store.Types().at(0).revision, 2);
    EXPECT_EQ(store.Types().at(0).defaults, changed);
    EXPECT_TRUE(Near(store.Types().at(0).updated_at, store.Now()));
}

TEST_P(TypeCases, SeveralTypesAtOnce) {
    std::vector<TypeDefaults> types = {{.type = "a"}, {.type = "b", .queue = "x"}};
    store.PublishTypes(types);
    EXPECT_THAT(store.Types(), SizeIs(2));
    store.PublishTypes({});
    EXPECT_THAT(store.Types(), SizeIs(2));
}

TEST_P(TypeCases, ARegisteredTypeGivesWhatTheRequestLacks) {
    Publish(Defaults());
    TaskRecord task = Get(Make());
    EXPECT_TRUE(task.type_known);
    EXPECT_EQ(task.queue, "q");
    EXPECT_EQ(task.priority, 9);
    EXPECT_EQ(task.retry, Fixed(3, 1min));
    EXPECT_EQ(task.max_attempts, 3);
    EXPECT_EQ(task.timeout, 5min);
}

TEST_P(TypeCases, WhatIsExplicitStays) {
    Publish(Defaults());
    TaskRecord task =
        Get(Make({.queue = "mine", .priority = 0, .retry = Fixed(7, 2min), .timeout = 0ms}));
    EXPECT_TRUE(task.type_known);
    EXPECT_EQ(task.queue, "mine");
    EXPECT_EQ(task.priority, 0);
    EXPECT_EQ(task.retry, Fixed(7, 2min));
    EXPECT_EQ(task.timeout, 0ms);
}

TEST_P(TypeCases, AnUnknownTypeIsFlaggedAndResolvedWhenItIsPublished) {
    TaskId plain = Make();
    TaskId given = Make({.queue = "mine", .timeout = 1min});
    TaskId other = Make({.type = "u"});
    EXPECT_FALSE(Get(plain).type_known);
    Publish(Defaults());
    TaskRecord task = Get(plain);
    EXPECT_TRUE(task.type_known);
    EXPECT_EQ(task.queue, "q");
    EXPECT_EQ(task.priority, 9);
    EXPECT_EQ(task.retry, Fixed(3, 1min));
    EXPECT_EQ(task.max_attempts, 3);
    EXPECT_EQ(task.timeout, 5min);
    task = Get(given);
    EXPECT_TRUE(task.type_known);
    EXPECT_EQ(task.queue, "mine");
    EXPECT_EQ(task.priority, 9);
    EXPECT_EQ(task.timeout, 1min);
    EXPECT_FALSE(Get(other).type_known);
    EXPECT_THAT(EventsOf(plain), ElementsAre(Event::kSubmit));
    EXPECT_THAT(ClaimMany(5, {.queues = {"default"}, .types = {"t"}}), IsEmpty());
    EXPECT_EQ(ClaimOne({.queues = {"q"}}).task, plain);
}

TEST_P(TypeCases, AnUnknownTypeThatWaitsForItsNextTryIsResolvedToo) {
    Lease lease = MakeClaimed();
    SettleAs(lease, Settlement::Kind::kRetry, 1h);
    Publish(Defaults());
    EXPECT_TRUE(Get(lease.task).type_known);
    EXPECT_EQ(Get(lease.task).queue, "q");
}

TEST_P(TypeCases, ARunningTaskIsLeftAloneAndResolvedByALaterPublication) {
    Lease lease = MakeClaimed();
    Publish(Defaults());
    EXPECT_EQ(Get(lease.task).queue, "default");
    SettleAs(lease, Settlement::Kind::kRelease);
    Publish(Defaults());
    EXPECT_TRUE(Get(lease.task).type_known);
    EXPECT_EQ(Get(lease.task).queue, "q");
}

TEST_P(TypeCases, ResolvedTasksDoNotFollowLaterChanges) {
    Publish(Defaults());
    TaskId id = Make();
    TypeDefaults changed = Defaults();
    changed.queue = "elsewhere";
    changed.priority = 200;
    Publish(changed);
    EXPECT_EQ(Get(id).queue, "q");
    EXPECT_EQ(Get(id).priority, 9);
    EXPECT_EQ(Get(Make()).queue, "elsewhere");
}

TEST_P(TypeCases, WhatWasEditedIsExplicit) {
    TaskId id = Make();
    ASSERT_TRUE(store.Edit(id, {.queue = "edited", .priority = 77}, "ann"));
    Publish(Defaults());
    TaskRecord task = Get(id);
    EXPECT_EQ(task.queue, "edited");
    EXPECT_EQ(task.priority, 77);
    EXPECT_EQ(task.timeout, 5min);
}

TEST_P(TypeCases, AResolvedPriorityMovesTheTaskInItsLine) {
    TaskId known = Make({.type = "u", .priority = 100});
    TaskId unknown = Make({.priority = 50});
    TaskId resolved = Make();
    TypeDefaults low = Defaults();
    low.queue = "default";
    low.priority = 1;
    Publish(low);
    EXPECT_EQ(ClaimOne().task, known);
    EXPECT_EQ(ClaimOne().task, unknown);
    EXPECT_EQ(ClaimOne().task, resolved);
}

TEST_P(TypeCases, TheCapIsThatOfTheResolvedQueue) {
    Publish(Defaults());
    store.SetQueue({.name = "q", .cap = 1}, "ann");
    Make();
    EXPECT_EQ(Submit({}).kind, SubmitReply::Kind::kQueueFull);
    Make({.queue = "default"});
}

}  // namespace
}  // namespace stint::conformance
