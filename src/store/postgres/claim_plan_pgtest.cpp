// Claims of what needs resources: what the last one locked is locked at once by the next, and
// whatever that turns out to be, no more is held than there is.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "base/clock.h"
#include "base/random.h"
#include "base/test_point.h"
#include "base/thread.h"
#include "postgres/connection.h"
#include "store/postgres/postgres_store.h"
#include "store/resources.h"
#include "support/postgres_schema.h"

namespace stint::store {
namespace {

using postgres::Commits;
using postgres::Statement;

class ClaimPlanTest : public ::testing::Test {
protected:
    void SetUp() override {
        SKIP_WITHOUT_POSTGRES();
        static stint::testing::PostgresSchema one("claim_plan");
        schema_ = &one;
        schema_->Empty();
        store_ = Open();
        session_ = OpenSession(*store_);
    }
    void TearDown() override { base::SetTestPointListener({}); }

    std::unique_ptr<Store> Open(Duration rescan_every = std::chrono::milliseconds{50}) {
        PostgresOptions options;
        options.url = stint::testing::TestPostgresUrl();
        options.schema = schema_->name();
        options.migrate = false;
        options.rescan_every = rescan_every;
        return OpenPostgresStore(options);
    }
    static SessionId OpenSession(Store& store) {
        SessionId id = base::SystemRandom().MakeId<SessionId>();
        store.OpenSession({.id = id, .hostname = "h", .lease = std::chrono::hours{24}});
        return id;
    }
    void Limit(const std::string& name, int capacity) {
        ResourceChange change{.name = name};
        change.capacity = capacity;
        ASSERT_TRUE(store_->Resources().Change(change, "ann"));
    }
    void Submit(
        const std::string& need, int count = 1, int priority = 0, const std::string& type = "t"
    ) {
        NewTask task{.type = type, .needs = Needs{{need, 1}}};
        task.priority = priority;
        store_->Submit(std::vector<NewTask>(static_cast<std::size_t>(count), task));
    }
    static std::vector<Lease> Claim(
        Store& store, SessionId session, int limit = 10, const std::string& type = "t"
    ) {
        return store.Claim({.session = session, .limit = limit, .types = {type}}).leases;
    }
    static void Complete(Store& store, SessionId session, const std::vector<Lease>& leases) {
        std::vector<Settlement> outcomes;
        for (const Lease& lease : leases) {
            outcomes.push_back({.task = lease.task, .token = lease.token, .session = session});
        }
        store.Settle(outcomes);
    }
    // Claims and completes until `task` was among them; false after a while.
    bool ClaimUntil(
        Store& store, SessionId session, TaskId task, const std::function<void()>& between
    ) {
        auto end = base::SystemClock().Now() + std::chrono::seconds{30};
        while (base::SystemClock().Now() < end) {
            std::vector<Lease> leases = Claim(store, session);
            Complete(store, session, leases);
            for (const Lease& lease : leases) {
                if (lease.task == task) return true;
            }
            between();
        }
        return false;
    }
    // How often resources are locked after they were read, in `claim`.
    static int Rereads(const std::function<void()>& claim) {
        int count = 0;
        base::SetTestPointListener([&](std::string_view name) {
            if (name == "store_postgres.resources_locked") ++count;
        });
        claim();
        base::SetTestPointListener({});
        return count;
    }
    std::int64_t Held(const std::string& name) { return Held(name, schema_->connection()); }
    std::int64_t Held(const std::string& name, postgres::Connection& connection) {
        const Statement held{
            "",
            "SELECT coalesce(sum(s.units), 0)::bigint FROM " + schema_->name() + ".slot s JOIN " +
                schema_->name() + ".resource r ON r.id = s.resource WHERE r.name = '" + name + "'"};
        return connection.Query(held, {}, Commits::kNo).Int(0, 0);
    }
    static postgres::ConnectOptions Address() {
        postgres::ConnectOptions options;
        options.url = stint::testing::TestPostgresUrl();
        return options;
    }

    stint::testing::PostgresSchema* schema_ = nullptr;
    std::unique_ptr<Store> store_;
    SessionId session_;
};

TEST_F(ClaimPlanTest, WhatTheLastClaimLockedIsLockedAtOnceByTheNext) {
    Limit("gpu", 2);
    Submit("gpu", 6);
    std::vector<Lease> first, second;
    EXPECT_EQ(Rereads([&] { first = Claim(*store_, session_); }), 1);
    EXPECT_EQ(first.size(), 2u);
    EXPECT_EQ(Claim(*store_, session_).size(), 0u) << "all of it is held";
    Complete(*store_, session_, first);
    EXPECT_EQ(Rereads([&] { second = Claim(*store_, session_); }), 0);
    EXPECT_EQ(second.size(), 2u);
    EXPECT_EQ(Held("gpu"), 2);
}

TEST_F(ClaimPlanTest, AClaimThatNeedsAnotherResourceLocksThatToo) {
    Limit("gpu", 2);
    Limit("disk", 1);
    Submit("gpu", 4);
    std::vector<Lease> first = Claim(*store_, session_);
    ASSERT_EQ(first.size(), 2u);
    Complete(*store_, session_, first);
    Submit("disk", 3, 1);  // before the others
    std::vector<Lease> second;
    EXPECT_EQ(Rereads([&] { second = Claim(*store_, session_); }), 1);
    ASSERT_EQ(second.size(), 3u);
    EXPECT_EQ(second[0].placement.needs.at(0).resource, "disk") << "by priority";
    EXPECT_EQ(Held("gpu"), 2);
    EXPECT_EQ(Held("disk"), 1);
}

TEST_F(ClaimPlanTest, AResourceThatIsLimitedOnlyNowIsHeldFromTheNextClaimOn) {
    Limit("gpu", 2);
    Submit("gpu", 1);
    Complete(*store_, session_, Claim(*store_, session_));
    Submit("disk", 3);
    std::vector<Lease> free = Claim(*store_, session_);
    EXPECT_EQ(free.size(), 3u) << "nothing limits it";
    Complete(*store_, session_, free);
    Limit("disk", 1);
    Submit("disk", 3);
    EXPECT_EQ(Claim(*store_, session_).size(), 1u);
    EXPECT_EQ(Held("disk"), 1);
}

TEST_F(ClaimPlanTest, OfTwoWhoRememberTheSameOneWaitsForTheOther) {
    // Of two types: of one, both would want the same task, and only one can have that.
    Limit("gpu", 1);
    Submit("gpu", 2);
    Submit("gpu", 2, 0, "u");
    auto other = Open();
    SessionId others = OpenSession(*other);
    Complete(*store_, session_, Claim(*store_, session_));  // both have been here before
    Complete(*other, others, Claim(*other, others, 10, "u"));

    // The first stands still between its plan and the taking, until the second waits or is through.
    std::atomic<bool> first_there = false, second_through = false;
    auto watcher = postgres::Connection::Open(Address());
    const Statement waiting{
        "", "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"};
    base::SetTestPointListener([&](std::string_view name) {
        if (name != "store_postgres.planned" || first_there.exchange(true)) return;
        auto end = base::SystemClock().Now() + std::chrono::seconds{8};
        while (!second_through && base::SystemClock().Now() < end &&
               watcher->Query(waiting, {}, Commits::kNo).Int(0, 0) == 0) {
        }
    });
    std::vector<Lease> first, second;
    {
        std::jthread one = base::StartThread([&] { first = Claim(*store_, session_); });
        std::jthread two = base::StartThread([&] {
            while (!first_there) std::this_thread::yield();
            second = Claim(*other, others, 10, "u");
            second_through = true;
        });
    }
    base::SetTestPointListener({});
    EXPECT_EQ(first.size() + second.size(), 1u);
    EXPECT_EQ(Held("gpu"), 1);
}

TEST_F(ClaimPlanTest, ManyWhoRememberTheSameHoldNoMoreThanThereIs) {
    constexpr int kTasks = 300;
    constexpr int kCapacity = 3;
    Limit("gpu", kCapacity);
    Submit("gpu", kTasks / 2);
    Submit("gpu", kTasks / 2, 0, "u");
    std::atomic<int> done = 0;
    std::atomic<std::int64_t> most = 0;
    std::vector<std::unique_ptr<Store>> stores;
    for (int i = 0; i < 4; ++i) stores.push_back(Open());
    {
        std::vector<std::jthread> workers;
        for (auto& store : stores) {
            workers.push_back(base::StartThread([&, &own = *store] {
                SessionId session = OpenSession(own);
                auto connection = postgres::Connection::Open(Address());
                int turn = 0;
                while (done < kTasks) {
                    std::vector<Lease> leases = Claim(own, session, 2, turn++ % 2 == 0 ? "t" : "u");
                    // While we hold ours.
                    std::int64_t now = Held("gpu", *connection);
                    std::int64_t before = most;
                    while (before < now && !most.compare_exchange_weak(before, now)) {
                    }
                    Complete(own, session, leases);
                    done += static_cast<int>(leases.size());
                }
            }));
        }
    }
    EXPECT_LE(most, kCapacity);
    EXPECT_EQ(Held("gpu"), 0);
    for (const CheckFinding& finding : store_->Check()) EXPECT_TRUE(finding.ok) << finding.detail;
}

TEST_F(ClaimPlanTest, ARetryThatFallsDueUnderSteadyLoadIsNotPassedOver) {
    auto store = Open(std::chrono::hours{1});
    Limit("gpu", 100);
    Submit("gpu", 1);
    Lease first = Claim(*store, session_).at(0);
    Settlement failed{.task = first.task, .token = first.token, .session = session_};
    failed.kind = Settlement::Kind::kRetry;
    failed.end = AttemptEnd::kFailed;
    failed.delay = std::chrono::milliseconds{30};
    failed.error = TaskError{"no", "test", {}, true};
    store->Settle({&failed, 1});
    // Behind it in the same lane there is always something to take.
    EXPECT_TRUE(ClaimUntil(*store, session_, first.task, [&] { Submit("gpu", 1); }));
}

TEST_F(ClaimPlanTest, WhatAnotherPutsBackIsFoundWhileSomethingElseIsBlocked) {
    auto store = Open(std::chrono::hours{1});
    Limit("gpu", 10);
    Limit("closed", 0);
    Submit("closed", 1);  // waits for good
    Submit("gpu", 2);
    std::vector<Lease> held = Claim(*store, session_);
    ASSERT_EQ(held.size(), 2u);
    Complete(*store, session_, {held[1]});
    auto other = Open();
    Settlement back{.task = held[0].task, .token = held[0].token, .session = session_};
    back.kind = Settlement::Kind::kRelease;
    back.end = AttemptEnd::kReleased;
    other->Settle({&back, 1});
    EXPECT_TRUE(ClaimUntil(*store, session_, held[0].task, [] {}));
}

TEST_F(ClaimPlanTest, WhoLooksAtLessStillTakesTheHigherPriorityFirst) {
    Limit("gpu", 1);
    Limit("cpu", 1000);
    Submit("gpu", 300, 10);
    ASSERT_THAT(Claim(*store_, session_, 300), ::testing::SizeIs(1));
    // It has learned that of the line little can be taken. Then all of it can.
    Limit("gpu", 500);
    Submit("cpu", 300, 1);
    std::vector<Lease> leases = Claim(*store_, session_, 299);
    ASSERT_THAT(leases, ::testing::SizeIs(299));
    for (const Lease& lease : leases) EXPECT_EQ(lease.priority, 10);
}

TEST_F(ClaimPlanTest, WhoLostHisTaskDoesNotFreeWhatItHolds) {
    Limit("gpu", 2);
    Submit("gpu", 3);
    std::vector<Lease> held = Claim(*store_, session_);
    ASSERT_EQ(held.size(), 2u);
    Complete(*store_, session_, {held[0]});  // from now on slots are let go of at once
    ASSERT_EQ(Held("gpu"), 1);
    std::vector<Lease> next = Claim(*store_, session_);
    ASSERT_EQ(next.size(), 1u);
    std::vector<Settlement> outcomes = {
        {.task = next[0].task, .token = next[0].token, .session = session_},
        {.task = held[1].task, .token = held[0].token, .session = session_}};
    std::vector<SettleReply> replies = store_->Settle(outcomes);
    EXPECT_EQ(replies[0].kind, SettleReply::Kind::kAccepted);
    EXPECT_EQ(replies[1].kind, SettleReply::Kind::kLost);
    EXPECT_EQ(Held("gpu"), 1) << "the other still runs";
    Complete(*store_, session_, {held[1]});
    EXPECT_EQ(Held("gpu"), 0);
}

TEST_F(ClaimPlanTest, WhereOneThatWasToHoldIsGoneAnotherOfItsGroupDoes) {
    Limit("gpu", 4);
    std::vector<TaskId> tasks;
    for (int i = 0; i < 8; ++i) {
        NewTask task{.type = "t", .needs = Needs{{"gpu", 1}}};
        tasks.push_back(store_->Submit({&task, 1}).at(0).id);
    }
    std::unique_ptr<Store> operators = Open();
    // The last of a group hold its units: all of those are cancelled after the plan was made.
    base::SetTestPointListener([&](std::string_view name) {
        if (name != "store_postgres.planned") return;
        base::SetTestPointListener({});
        operators->Cancel(std::span(tasks).subspan(6), "ann", "no longer needed");
    });
    std::vector<Lease> leases =
        store_->Claim({.session = session_, .limit = 8, .types = {"t"}, .at_once = 2}).leases;
    ASSERT_EQ(leases.size(), 6u);
    EXPECT_EQ(Held("gpu"), 2);
    for (std::size_t left = leases.size(); left > 0; --left) {
        EXPECT_EQ(Held("gpu"), static_cast<int>(std::min<std::size_t>(2, left)));
        Complete(*store_, session_, {leases[left - 1]});
    }
    EXPECT_EQ(Held("gpu"), 0);
}

TEST_F(ClaimPlanTest, WhatIsPutBackBeforeTheMarksByAnotherIsFound) {
    Limit("gpu", 2);
    Submit("gpu", 4);
    std::vector<Lease> first = Claim(*store_, session_);
    ASSERT_EQ(first.size(), 2u);
    std::vector<Lease> rest;
    auto other = Open();
    Complete(*store_, session_, {first[1]});
    rest = Claim(*store_, session_);
    ASSERT_EQ(rest.size(), 1u);
    // Handed back by a process whose marks are not ours.
    Settlement back{.task = first[0].task, .token = first[0].token, .session = session_};
    back.kind = Settlement::Kind::kRelease;
    back.end = AttemptEnd::kReleased;
    other->Settle({&back, 1});
    Complete(*store_, session_, rest);
    // At once where looking everywhere is cheap, else when it is time to.
    std::vector<TaskId> found;
    auto end = base::SystemClock().Now() + std::chrono::seconds{30};
    while (found.size() < 2 && base::SystemClock().Now() < end) {
        std::vector<Lease> more = Claim(*store_, session_);
        for (const Lease& lease : more) found.push_back(lease.task);
        Complete(*store_, session_, more);
    }
    EXPECT_THAT(found, ::testing::Contains(first[0].task));
}

}  // namespace
}  // namespace stint::store
