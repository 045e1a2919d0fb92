// Items, checkpoints and deletions in time. Items and checkpoints are written only with the token
// of the lease; of two items of one key the later stays, and the counts agree. They go with the
// task's record. A deletion is taken by one, at its time, no faster than its kind's pace.
#include "conformance/conformance.h"
#include "store/results.h"

namespace stint::conformance {
namespace {

using Kind = Settlement::Kind;

class Results : public Conformance {
protected:
    ResultStore& results() { return store.Results(); }

    static ItemResult Good(const std::string& key) { return {.key = key, .action = "update"}; }
    static ItemResult Bad(const std::string& key) {
        return {.key = key, .action = "update", .error = "no such host"};
    }
    std::optional<ItemCounts> Write(const Lease& lease, std::vector<ItemResult> items) {
        return results().Write(
            {.by = {lease.task, lease.token},
             .claim_no = lease.claim_no,
             .items = std::move(items),
             .checkpoint = {}}
        );
    }
    bool Save(const Lease& lease, const std::string& json) {
        return results()
            .Write(
                {.by = {lease.task, lease.token},
                 .claim_no = lease.claim_no,
                 .items = {},
                 .checkpoint = json}
            )
            .has_value();
    }
    std::vector<std::string> Keys(const ItemsRequest& request) {
        std::vector<std::string> keys;
        for (const ItemRecord& record : results().Items(request)) keys.push_back(record.item.key);
        return keys;
    }

    NewDeletion Doomed(const std::string& key, Duration grace = 1h) {
        return {
            .kind = "user",
            .key = key,
            .initiator = "ann",
            .steps = R"([{"name":"delete","tasks":[{"type":"t"}]}])",
            .grace = grace};
    }
    std::vector<std::string> Take(int limit = 100) {
        std::vector<std::string> keys;
        for (const Deletion& one : results().TakeDeletions(limit).deletions) {
            keys.push_back(one.key);
        }
        return keys;
    }
};
INSTANTIATE_TEST_SUITE_P(Store, Results, testing::ValuesIn(Backends()), &BackendName);

// ---- items -------------------------------------------------------------------------------------

TEST_P(Results, ItemsAreKeptAsTheyWereWritten) {
    Lease lease = MakeClaimed();
    ItemResult item{
        .key = "host/1",
        .action = "update",
        .before = {R"({"ip":"10.0.0.1"})"},
        .after = {R"({"ip":"10.0.0.2"})"},
        .error = "it said \"no\""};
    EXPECT_EQ(Write(lease, {item, Good("host/2")}), (ItemCounts{2, 1}));
    auto items = results().Items({.task = lease.task});
    ASSERT_THAT(items, SizeIs(2));
    EXPECT_EQ(items[0].item.key, "host/1");
    EXPECT_EQ(items[0].item.action, "update");
    EXPECT_EQ(items[0].item.before.text, item.before.text);
    EXPECT_EQ(items[0].item.after.text, item.after.text);
    EXPECT_EQ(items[0].item.error, item.error);
    EXPECT_EQ(items[0].claim_no, lease.claim_no);
    EXPECT_TRUE(Near(items[0].written_at, store.Now()));
    EXPECT_EQ(items[1].item.before.text, "null");
    EXPECT_EQ(items[1].item.error, "");
    EXPECT_EQ(results().Summary(lease.task).items, (ItemCounts{2, 1}));
    Complete(lease);
    EXPECT_EQ(OpenAgain()->Results().Summary(lease.task).items, (ItemCounts{2, 1}));
}

TEST_P(Results, TheSameKeyAgainReplacesAndIsCountedOnce) {
    Lease lease = MakeClaimed();
    EXPECT_EQ(Write(lease, {Bad("a"), Bad("b"), Good("b")}), (ItemCounts{2, 1}));
    EXPECT_EQ(Write(lease, {Good("a")}), (ItemCounts{2, 0}));
    EXPECT_EQ(Write(lease, {Bad("b"), Bad("c")}), (ItemCounts{3, 2}));
    EXPECT_THAT(Keys({.task = lease.task}), ElementsAre("a", "b", "c"));
}

TEST_P(Results, ALaterAttemptReplacesAndContinues) {
    Lease first = MakeClaimed();
    Write(first, {Bad("a"), Good("b")});
    SettleAs(first, Kind::kRetry);
    Lease second = ClaimOne();
    EXPECT_EQ(Write(second, {Good("a"), Good("c")}), (ItemCounts{3, 0}));
    auto items = results().Items({.task = first.task});
    ASSERT_THAT(items, SizeIs(3));
    EXPECT_EQ(items[0].claim_no, second.claim_no);
    EXPECT_EQ(items[1].claim_no, first.claim_no);
}

TEST_P(Results, PagesAreByKeyAndErrorsAreFoundAlone) {
    Lease lease = MakeClaimed();
    std::vector<ItemResult> items;
    for (const char* key : {"b", "A", "ä", "c", "a"}) items.push_back(Good(key));
    items[3] = Bad("c");
    items.push_back(Bad("x"));
    Write(lease, items);
    // By bytes, whatever the database's language.
    EXPECT_THAT(Keys({.task = lease.task}), ElementsAre("A", "a", "b", "c", "x", "ä"));
    EXPECT_THAT(Keys({.task = lease.task, .after = "b", .limit = 2}), ElementsAre("c", "x"));
    EXPECT_THAT(Keys({.task = lease.task, .errors_only = true}), ElementsAre("c", "x"));
    EXPECT_THAT(Keys({.task = lease.task, .errors_only = true, .after = "c"}), ElementsAre("x"));
    EXPECT_THAT(Keys({.task = Make()}), IsEmpty());
}

TEST_P(Results, OnlyTheHolderWrites) {
    Lease stale = MakeClaimed();
    Write(stale, {Good("a")});
    Save(stale, "1");
    Crash(stale);
    Advance(1min);
    EXPECT_EQ(Write(stale, {Bad("a")}), std::nullopt) << "nobody holds it";
    Lease now = ClaimSuspect();
    EXPECT_EQ(Write(stale, {Bad("a"), Bad("b")}), std::nullopt);
    EXPECT_FALSE(Save(stale, "2"));
    Lease forged = now;
    forged.token = {};
    EXPECT_EQ(Write(forged, {Bad("a")}), std::nullopt);
    EXPECT_TRUE(Write(now, {Good("b")}));
    EXPECT_EQ(results().Summary(now.task).items, (ItemCounts{2, 0}));
    EXPECT_EQ(results().Summary(now.task).checkpoint->json, "1");
    Complete(now);
    EXPECT_EQ(Write(now, {Bad("a")}), std::nullopt) << "it is over";
}

// ---- checkpoints -------------------------------------------------------------------------------

TEST_P(Results, TheLastCheckpointIsThereForTheNextAttempt) {
    Lease first = MakeClaimed();
    EXPECT_EQ(results().Summary(first.task).checkpoint, std::nullopt);
    EXPECT_TRUE(Save(first, R"({"page":1})"));
    EXPECT_TRUE(Save(first, R"({"page":2})"));
    Write(first, {Good("a")});
    SettleAs(first, Kind::kRetry);
    Lease second = ClaimOne();
    auto saved = results().Summary(second.task).checkpoint;
    ASSERT_TRUE(saved.has_value());
    EXPECT_EQ(saved->json, R"({"page":2})");
    EXPECT_EQ(saved->claim_no, first.claim_no);
    EXPECT_TRUE(Near(saved->saved_at, store.Now()));
    // Also through an end for good and an operator's retry.
    SettleAs(second, Kind::kDead);
    Retry(second.task);
    EXPECT_EQ(results().Summary(second.task).checkpoint->json, R"({"page":2})");
}

TEST_P(Results, ItemsAndTheCheckpointBehindThemAreOneWrite) {
    Lease lease = MakeClaimed();
    auto counts = results().Write(
        {.by = {lease.task, lease.token},
         .claim_no = lease.claim_no,
         .items = {Good("a"), Bad("b")},
         .checkpoint = "7"}
    );
    EXPECT_EQ(counts, (ItemCounts{2, 1}));
    EXPECT_EQ(results().Summary(lease.task).checkpoint->json, "7");
}

TEST_P(Results, TheyGoWithTheTasksRecord) {
    store.SetQueue({.name = "brief", .keep_complete = 24h * 2}, "ann");
    Lease gone = MakeClaimed({.queue = "brief"});
    Write(gone, {Good("a")});
    Save(gone, "1");
    Complete(gone);
    Lease live = MakeClaimed({.queue = "long"});
    Write(live, {Good("a")});
    Complete(live);
    Advance(24h * 5);
    Housekeep();
    Housekeep();
    ASSERT_EQ(store.Get(gone.task), std::nullopt);
    EXPECT_EQ(results().Summary(gone.task).items, ItemCounts{});
    EXPECT_EQ(results().Summary(gone.task).checkpoint, std::nullopt);
    EXPECT_THAT(Keys({.task = gone.task}), IsEmpty());
    EXPECT_THAT(Keys({.task = live.task}), SizeIs(1));
}

TEST_P(Results, HowManyThereAreDoesNotKeepThemBeyondTheRecord) {
    store.SetQueue({.name = "brief", .keep_complete = 24h * 2}, "ann");
    std::vector<TaskId> gone;
    for (int i = 0; i < 7; ++i) {
        Lease lease = MakeClaimed({.queue = "brief"});
        Write(lease, {Good("a"), Good("b")});
        Complete(lease);
        gone.push_back(lease.task);
    }
    Lease live = MakeClaimed({.queue = "long"});
    Write(live, {Good("a")});
    Complete(live);
    Advance(24h * 5);
    bool more = true;
    int calls = 0;
    for (; more && calls < 50; ++calls) {
        more = store.Housekeep({.limit = 2, .history = true}).more;
    }
    EXPECT_FALSE(more) << "what is kept is not looked at again and again";
    for (TaskId task : gone) EXPECT_EQ(results().Summary(task).items, ItemCounts{});
    EXPECT_THAT(Keys({.task = live.task}), SizeIs(1));
}

// ---- what they say of the task -----------------------------------------------------------------

TEST_P(Results, ALaterRunThatKnowsNothingOfTheItemsIsJudgedByThem) {
    auto run_and_complete = [&](std::vector<ItemResult> items, Kind between) {
        Lease first = MakeClaimed({.retry = RetryPolicy{.max_attempts = 2}});
        Write(first, items);
        SettleAs(first, between);
        Lease second = ClaimOne();
        EXPECT_EQ(second.task, first.task);
        SettleReply reply = Settle(Outcome(second, Kind::kComplete));
        EXPECT_EQ(reply.kind, SettleReply::Kind::kAccepted);
        EXPECT_EQ(reply.state, StateOf(first.task));
        return Get(first.task);
    };
    TaskRecord good = run_and_complete({Good("a")}, Kind::kSnooze);
    EXPECT_EQ(good.state, State::kComplete);
    EXPECT_FALSE(good.warning);
    TaskRecord some = run_and_complete({Good("a"), Bad("b")}, Kind::kSnooze);
    EXPECT_EQ(some.state, State::kComplete);
    EXPECT_TRUE(some.warning);
    EXPECT_EQ(some.reason, "1 of 2 items are in error");
    TaskRecord all = run_and_complete({Bad("a"), Bad("b")}, Kind::kSnooze);
    EXPECT_EQ(all.state, State::kError) << "an attempt is left";
    EXPECT_EQ(all.error->klass, "items");
    EXPECT_EQ(all.error->message, "all 2 items are in error");
    TaskRecord last = run_and_complete({Bad("a")}, Kind::kRetry);
    EXPECT_EQ(last.state, State::kDead);
}

TEST_P(Results, OneThatIsCompletedFromOutsideIsJudgedByItsItems) {
    auto finish = [&](std::vector<ItemResult> items) {
        Lease lease = MakeClaimed({.retry = RetryPolicy{.max_attempts = 1}});
        Write(lease, items);
        SettleAs(lease, Kind::kBackground);
        auto state = store.FinishBackground(
            {.task = lease.task, .token = lease.token, .actor = "x", .output = "1"}
        );
        EXPECT_TRUE(state) << state.error().message;
        EXPECT_EQ(*state, StateOf(lease.task));
        return Get(lease.task);
    };
    EXPECT_EQ(finish({Good("a")}).state, State::kComplete);
    TaskRecord some = finish({Good("a"), Bad("b")});
    EXPECT_EQ(some.state, State::kComplete);
    EXPECT_EQ(some.output, "1");
    EXPECT_TRUE(some.warning);
    TaskRecord all = finish({Bad("a")});
    EXPECT_EQ(all.state, State::kDead);
    EXPECT_EQ(all.error->klass, "items");
}

// ---- deletions ---------------------------------------------------------------------------------

TEST_P(Results, AMarkIsTakenAtItsTimeByOne) {
    Deletion mark = results().MarkDeletion(Doomed("ann"));
    EXPECT_TRUE(mark.id.valid());
    EXPECT_EQ(mark.state, DeletionState::kMarked);
    EXPECT_TRUE(Near(mark.delete_at, store.Now() + 1h));
    EXPECT_THAT(Take(), IsEmpty());
    Advance(61min);
    auto taken = results().TakeDeletions(10).deletions;
    ASSERT_THAT(taken, SizeIs(1));
    EXPECT_EQ(taken[0].id, mark.id);
    EXPECT_EQ(taken[0].initiator, "ann");
    EXPECT_EQ(taken[0].steps, Doomed("ann").steps);
    EXPECT_THAT(Take(), IsEmpty());
    results().BeginDeletion(mark.id, TaskId(17));
    auto found = results().FindDeletion(kDefaultTenant, "user", "ann");
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->state, DeletionState::kBegun);
    EXPECT_EQ(found->task, TaskId(17));
    Advance(24h);
    EXPECT_THAT(Take(), IsEmpty());
}

TEST_P(Results, WhoTakesOneAndDiesLeavesItToTheNext) {
    results().MarkDeletion(Doomed("ann", 0s));
    EXPECT_THAT(Take(), ElementsAre("ann"));
    Advance(2min);
    EXPECT_THAT(Take(), ElementsAre("ann"));
}

TEST_P(Results, ASecondMarkChangesNothing) {
    Deletion first = results().MarkDeletion(Doomed("ann"));
    NewDeletion again = Doomed("ann", 100h);
    again.initiator = "bob";
    Deletion second = results().MarkDeletion(again);
    EXPECT_EQ(second.id, first.id);
    EXPECT_EQ(second.initiator, "ann");
    EXPECT_EQ(second.delete_at, first.delete_at);
}

TEST_P(Results, AMarkCanBeTakenAwayUntilItIsTaken) {
    results().MarkDeletion(Doomed("ann"));
    results().MarkDeletion(Doomed("bob", 0s));
    EXPECT_TRUE(results().Unmark(kDefaultTenant, "user", "ann"));
    EXPECT_EQ(results().Unmark(kDefaultTenant, "user", "ann").error().code, Code::kNotFound);
    EXPECT_THAT(Take(), ElementsAre("bob"));
    EXPECT_EQ(results().Unmark(kDefaultTenant, "user", "bob").error().code, Code::kConflict);
    Deletion bob = *results().FindDeletion(kDefaultTenant, "user", "bob");
    results().BeginDeletion(bob.id, TaskId(9));
    auto begun = results().Unmark(kDefaultTenant, "user", "bob");
    ASSERT_FALSE(begun);
    EXPECT_THAT(begun.error().message, HasSubstr("its task is 9"));
    // An object that was made anew may be marked anew, by who knows that the deletion is over.
    NewDeletion anew = Doomed("bob");
    Deletion running = results().MarkDeletion(anew);
    EXPECT_EQ(running.id, bob.id);
    EXPECT_EQ(running.state, DeletionState::kBegun) << "which may run yet";
    anew.replaces = bob.id;
    Deletion next = results().MarkDeletion(anew);
    EXPECT_NE(next.id, bob.id);
    EXPECT_EQ(next.state, DeletionState::kMarked);
    EXPECT_FALSE(next.task.valid());
}

TEST_P(Results, AKindGoesNoFasterThanItsPace) {
    results().SetPace({.kind = "user", .cap = 2, .every = 10min});
    for (const char* key : {"a", "b", "c", "d", "e"}) results().MarkDeletion(Doomed(key, 0s));
    NewDeletion other = Doomed("x", 0s);
    other.kind = "group";
    results().MarkDeletion(other);
    EXPECT_THAT(Take(), UnorderedElementsAre("a", "b", "x"));
    for (const char* key : {"a", "b"}) {
        results().BeginDeletion(results().FindDeletion(kDefaultTenant, "user", key)->id, TaskId(1));
    }
    EXPECT_THAT(Take(), IsEmpty());
    EXPECT_THAT(OpenAgain()->Results().TakeDeletions(10).deletions, IsEmpty());
    Advance(11min);
    EXPECT_THAT(Take(), testing::IsSupersetOf({"c", "d"}));
    results().SetPace({.kind = "user", .cap = 100, .every = 1s});
    Advance(2s);
    EXPECT_THAT(Take(), ElementsAre("e"));
}

TEST_P(Results, WhatWasTakenAndNotBegunIsTakenAgainWhateverThePace) {
    results().SetPace({.kind = "user", .cap = 1, .every = 24h * 30});
    for (const char* key : {"a", "b"}) results().MarkDeletion(Doomed(key, 0s));
    EXPECT_THAT(Take(), ElementsAre("a"));
    EXPECT_THAT(Take(), IsEmpty());
    Advance(limits::kDeletionTaken + 1s);
    EXPECT_THAT(Take(), ElementsAre("a")) << "long before its kind's next turn, and no other";
}

TEST_P(Results, AKindGetsAllOfItsTurnBesideOthers) {
    for (const char* kind : {"user", "group"}) {
        results().SetPace({.kind = kind, .cap = 6, .every = 10min});
        for (int i = 0; i < 8; ++i) {
            NewDeletion doomed = Doomed(std::to_string(i), 0s);
            doomed.kind = kind;
            results().MarkDeletion(doomed);
        }
    }
    EXPECT_THAT(Take(5), SizeIs(6)) << "its cap, not the caller's idea of enough";
    EXPECT_THAT(Take(5), SizeIs(6)) << "the other kind, and all of its turn";
    EXPECT_THAT(Take(5), IsEmpty());
}

TEST_P(Results, DeletionsAreListedByKindAndKey) {
    for (const char* key : {"b", "a", "c"}) results().MarkDeletion(Doomed(key));
    NewDeletion other = Doomed("z");
    other.kind = "group";
    results().MarkDeletion(other);
    auto keys = [&](const DeletionsRequest& request) {
        std::vector<std::string> listed;
        for (const Deletion& one : results().Deletions(request)) listed.push_back(one.key);
        return listed;
    };
    EXPECT_THAT(keys({}), ElementsAre("z", "a", "b", "c"));
    EXPECT_THAT(keys({.tenant = kDefaultTenant, .kind = "user"}), ElementsAre("a", "b", "c"));
    EXPECT_THAT(
        keys(
            {.kind = "user",
             .after_tenant = kDefaultTenant,
             .after_kind = "user",
             .after_key = "a",
             .limit = 1}
        ),
        ElementsAre("b")
    );
    EXPECT_THAT(keys({.tenant = TenantId(7)}), IsEmpty());
}

TEST_P(Results, OldDeletionsAreForgotten) {
    Deletion mark = results().MarkDeletion(Doomed("ann", 0s));
    Take();
    results().BeginDeletion(mark.id, TaskId(3));
    Advance(24h * 8);
    Take();
    EXPECT_EQ(results().FindDeletion(kDefaultTenant, "user", "ann"), std::nullopt);
}

}  // namespace
}  // namespace stint::conformance
