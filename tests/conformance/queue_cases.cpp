// Queues: settings, caps, pauses. A queue exists from its first task or setting on. A cap counts
// waiting tasks (OPEN and ERROR) and refuses at submit only.
#include "base/thread.h"
#include "conformance/conformance.h"

namespace stint::conformance {
namespace {

using Kind = Settlement::Kind;

class QueueCases : public Conformance {
protected:
    std::optional<QueueRecord> Find(const std::string& name) {
        for (const QueueRecord& queue : store.Queues()) {
            if (queue.settings.name == name) return queue;
        }
        return std::nullopt;
    }
};
INSTANTIATE_TEST_SUITE_P(Store, QueueCases, testing::ValuesIn(Backends()), &BackendName);

TEST_P(QueueCases, AQueueExistsFromItsFirstTaskOn) {
    EXPECT_EQ(Find("a"), std::nullopt);
    TaskId id = Make({.queue = "a"});
    std::optional<QueueRecord> queue = Find("a");
    ASSERT_TRUE(queue.has_value());
    EXPECT_FALSE(queue->settings.paused);
    EXPECT_EQ(queue->settings.cap, std::nullopt);
    EXPECT_EQ(queue->waiting, 1);
    Cancel(id);
    ASSERT_TRUE(Find("a").has_value());
    EXPECT_EQ(Find("a")->waiting, 0);
}

TEST_P(QueueCases, SettingsAreKeptAndReplaced) {
    store.SetQueue(
        {.name = "a",
         .paused = true,
         .cap = 5,
         .keep_complete = 24h,
         .keep_dead = 48h,
         .keep_cancelled = 72h},
        "ann"
    );
    std::optional<QueueRecord> queue = Find("a");
    ASSERT_TRUE(queue.has_value());
    EXPECT_TRUE(queue->settings.paused);
    EXPECT_EQ(queue->settings.cap, 5);
    EXPECT_EQ(queue->settings.keep_complete, 24h);
    EXPECT_EQ(queue->settings.keep_dead, 48h);
    EXPECT_EQ(queue->settings.keep_cancelled, 72h);
    store.SetQueue({.name = "a"}, "ann");
    EXPECT_FALSE(Find("a")->settings.paused);
    EXPECT_EQ(Find("a")->settings.cap, std::nullopt);
    EXPECT_EQ(Find("a")->settings.keep_dead, std::nullopt);
}

TEST_P(QueueCases, AChangeLeavesTheOtherSettingsAlone) {
    store.SetQueue({.name = "a", .cap = 5, .keep_complete = 24h, .keep_dead = 48h}, "ann");
    auto changed = store.ChangeQueue({.name = "a", .paused = true}, "bob");
    ASSERT_TRUE(changed.has_value());
    EXPECT_TRUE(changed->paused);
    EXPECT_EQ(changed->cap, 5);
    changed = store.ChangeQueue(
        {.name = "a", .cap = std::optional<std::int64_t>(), .keep_dead = std::optional(72h)}, "bob"
    );
    EXPECT_EQ(changed->cap, std::nullopt);
    QueueSettings settings = Find("a")->settings;
    EXPECT_TRUE(settings.paused);
    EXPECT_EQ(settings.cap, std::nullopt);
    EXPECT_EQ(settings.keep_complete, 24h);
    EXPECT_EQ(settings.keep_dead, 72h);
    EXPECT_EQ(settings.keep_cancelled, std::nullopt);
}

TEST_P(QueueCases, AQueueTellsWhoChangedItLast) {
    Make({.queue = "a"});
    EXPECT_EQ(Find("a")->settings.changed_by, "");
    EXPECT_EQ(Find("a")->settings.changed_at, std::nullopt);
    store.ChangeQueue({.name = "a", .paused = true}, "operator:ann");
    Advance(1h);
    store.ChangeQueue({.name = "a", .paused = false}, "operator:bob");
    EXPECT_EQ(Find("a")->settings.changed_by, "operator:bob");
    ASSERT_TRUE(Find("a")->settings.changed_at.has_value());
    EXPECT_TRUE(Near(*Find("a")->settings.changed_at, store.Now()));
}

TEST_P(QueueCases, AQueueThatIsNotThereIsMadeOnlyWhereItMayBe) {
    EXPECT_EQ(
        store.ChangeQueue({.name = "a", .paused = true, .create = false}, "ann"), std::nullopt
    );
    EXPECT_EQ(Find("a"), std::nullopt);
    Make({.queue = "b"});
    EXPECT_TRUE(store.ChangeQueue({.name = "b", .paused = true, .create = false}, "ann"));
    EXPECT_TRUE(store.ChangeQueue({.name = "a", .paused = true}, "ann"));
    EXPECT_TRUE(Find("a")->settings.paused);
}

TEST_P(QueueCases, ChangesAtTheSameTimeDoNotUndoEachOther) {
    constexpr int kRounds = 20;
    auto each = [this](auto change) {
        return base::StartThread([this, change] {
            for (int i = 1; i <= kRounds; ++i) store.ChangeQueue(change(i), "ann");
        });
    };
    {
        auto caps = each([](int i) { return QueueChange{.name = "a", .cap = i}; });
        auto keeps = each([](int i) {
            return QueueChange{.name = "a", .keep_dead = std::optional<Duration>((1 + i % 2) * 1h)};
        });
        auto pauses = each([](int i) { return QueueChange{.name = "a", .paused = i % 2 == 0}; });
    }
    QueueSettings settings = Find("a")->settings;
    EXPECT_EQ(settings.cap, kRounds);
    EXPECT_EQ(settings.keep_dead, 1h);
    EXPECT_TRUE(settings.paused);
}

TEST_P(QueueCases, WaitingAndRunningAreCounted) {
    MakeMany(4, {.queue = "a"});
    Make({.queue = "a", .delay = 1h});
    SettleAs(ClaimOne(), Kind::kRetry, 1h);
    SettleAs(ClaimOne(), Kind::kBackground);
    ClaimOne();
    EXPECT_EQ(Find("a")->waiting, 3);  // one open, one later, one failed
    EXPECT_EQ(Find("a")->running, 1);
}

TEST_P(QueueCases, AFullQueueRefusesClearlyAndStoresNothing) {
    store.SetQueue({.name = "a", .cap = 2}, "ann");
    MakeMany(2, {.queue = "a"});
    SubmitReply full = Submit({.queue = "a", .idempotency_key = "k", .unique_key = "u"});
    EXPECT_EQ(full.kind, SubmitReply::Kind::kQueueFull);
    EXPECT_FALSE(full.accepted());
    EXPECT_THAT(full.message, HasSubstr("\"a\""));
    EXPECT_THAT(full.message, HasSubstr("2"));
    EXPECT_EQ(store.FindByIdempotencyKey(kDefaultTenant, "k"), std::nullopt);
    Make({.queue = "b"});
    EXPECT_THAT(ListAll({.queues = {"a"}}), SizeIs(2));
    ClaimOne({.queues = {"a"}});
    Make({.queue = "a", .idempotency_key = "k", .unique_key = "u"});
}

TEST_P(QueueCases, TheCapHoldsWithinABatch) {
    store.SetQueue({.name = "a", .cap = 3}, "ann");
    std::vector<NewTask> batch(5, NewTask{.type = "t", .queue = "a"});
    int created = 0;
    int refused = 0;
    for (const SubmitReply& reply : store.Submit(batch)) {
        created += reply.kind == SubmitReply::Kind::kCreated ? 1 : 0;
        refused += reply.kind == SubmitReply::Kind::kQueueFull ? 1 : 0;
    }
    EXPECT_EQ(created, 3);
    EXPECT_EQ(refused, 2);
}

TEST_P(QueueCases, TheCapCountsFailedTasksAndNotRunningOnes) {
    store.SetQueue({.name = "a", .cap = 1}, "ann");
    Make({.queue = "a"});
    Lease lease = ClaimOne();
    Make({.queue = "a"});
    EXPECT_EQ(Submit({.queue = "a"}).kind, SubmitReply::Kind::kQueueFull);
    SettleAs(lease, Kind::kRetry, 1h);  // over its cap now, which refuses nobody's return
    Complete(ClaimOne());
    EXPECT_EQ(Submit({.queue = "a"}).kind, SubmitReply::Kind::kQueueFull);
    Discard(lease.task);
    Make({.queue = "a"});
}

TEST_P(QueueCases, AnExistingTaskIsAnsweredEvenWhenTheQueueIsFull) {
    store.SetQueue({.name = "a", .cap = 1}, "ann");
    NewTask ask{.queue = "a", .idempotency_key = "k", .unique_key = "u"};
    TaskId id = Make(ask);
    EXPECT_EQ(Submit(ask).id, id);
    EXPECT_EQ(Submit({.queue = "a", .unique_key = "u"}).id, id);
}

TEST_P(QueueCases, ACapOfZeroRefusesEverything) {
    store.SetQueue({.name = "a", .cap = 0}, "ann");
    EXPECT_EQ(Submit({.queue = "a"}).kind, SubmitReply::Kind::kQueueFull);
    store.SetQueue({.name = "a"}, "ann");
    Make({.queue = "a"});
}

TEST_P(QueueCases, APausedQueueStillAcceptsAndSettles) {
    Make({.queue = "a"});
    Lease lease = ClaimOne();
    store.SetQueue({.name = "a", .paused = true}, "ann");
    TaskId waiting = Make({.queue = "a"});
    EXPECT_EQ(Complete(lease), State::kComplete);
    EXPECT_THAT(ClaimMany(5), IsEmpty());
    EXPECT_EQ(Cancel(waiting).kind, CancelReply::Kind::kCancelled);
}

TEST_P(QueueCases, APausedQueueIsNotAmongTheNextDue) {
    Make({.queue = "a", .delay = 5min});
    store.SetQueue({.name = "a", .paused = true}, "ann");
    EXPECT_EQ(Claim().next_due, std::nullopt);
}

}  // namespace
}  // namespace stint::conformance
