// The common claim of a single lane, and the common success: when they decide, and that they leave
// to the ordinary statements all that has more to it.
#include "store/postgres/store_suite.h"
#include "store/resources.h"

namespace stint::store {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class OnlyLane : public PostgresStoreTest {
protected:
    void SetUp() override {
        PostgresStoreTest::SetUp();
        if (IsSkipped()) return;
        Listen([this](std::string_view point) {
            if (point == "store_postgres.only_lane") ++decided_;
            if (point == "store_postgres.not_only_lane") ++stood_back_;
        });
        // The first claim learns which lane it is.
        Make();
        first_ = Claim(*store_).at(0);
        EXPECT_EQ(decided_, 0);
    }
    std::vector<TaskId> Take(int limit) {
        std::vector<TaskId> tasks;
        for (const Lease& lease : Claim(*store_, limit)) tasks.push_back(lease.task);
        return tasks;
    }
    // The claim under test was tried, and left to the ordinary one.
    void ExpectStoodBack() {
        EXPECT_EQ(decided_, 0);
        EXPECT_EQ(stood_back_, 1);
    }
    TaskId MakeOf(std::string type, NewTask task = {}) {
        task.type = std::move(type);
        return store_->Submit({&task, 1}).at(0).id;
    }

    Lease first_;
    int decided_ = 0, stood_back_ = 0;
};

TEST_F(OnlyLane, TheSecondClaimTakesWhatTheOrdinaryOneWould) {
    NewTask like;
    like.timeout = hours{2};
    like.input = "{\"a\":1}";
    std::vector<TaskId> made = {Make(like), Make(like), Make(like)};
    std::vector<Lease> leases = Claim(*store_, 2);
    EXPECT_EQ(decided_, 1);
    ASSERT_THAT(leases, SizeIs(2));
    for (std::size_t i = 0; i < 2; ++i) {
        const Lease& lease = leases[i];
        EXPECT_EQ(lease.task, made[i]);
        EXPECT_EQ(lease.type, "t");
        EXPECT_EQ(lease.queue, first_.queue);
        EXPECT_EQ(lease.priority, first_.priority);
        EXPECT_EQ(lease.retry, first_.retry);
        EXPECT_EQ(lease.attempt, 1);
        EXPECT_EQ(lease.claim_no, 1);
        EXPECT_EQ(lease.generation, 1);
        EXPECT_EQ(lease.timeout, hours{2});
        EXPECT_EQ(lease.input, "{\"a\":1}");
        EXPECT_EQ(lease.idempotency_key, "task-" + made[i].ToString());
        std::vector<AuditEntry> audit = store_->Audit({.task = made[i]});
        ASSERT_THAT(audit, SizeIs(2));
        EXPECT_EQ(audit.at(1).event, Event::kClaim);
        EXPECT_EQ(audit.at(1).session, session_);
        Settlement done = Done(lease);
        EXPECT_EQ(store_->Settle({&done, 1}).at(0).kind, SettleReply::Kind::kAccepted);
    }
    EXPECT_EQ(store_->Get(made[2])->state, State::kOpen);
    for (const CheckFinding& finding : store_->Check()) EXPECT_TRUE(finding.ok) << finding.detail;
}

TEST_F(OnlyLane, MoreThanOneLeaseHoldsIsTakenAtOnce) {
    store_->Submit(std::vector<NewTask>(600, NewTask{.type = "t"}));
    std::vector<Lease> leases = Claim(*store_, 700);
    EXPECT_EQ(decided_, 1);
    ASSERT_THAT(leases, SizeIs(600));
    std::vector<Settlement> outcomes;
    for (const Lease& lease : leases) outcomes.push_back(Done(lease));
    for (const SettleReply& reply : store_->Settle(outcomes)) {
        EXPECT_EQ(reply.kind, SettleReply::Kind::kAccepted);
    }
}

TEST_F(OnlyLane, WhatIsForLaterIsSaid) {
    NewTask later;
    later.delay = hours{1};
    Make(later);
    Make();
    ClaimReply reply = store_->Claim({.session = session_, .limit = 9, .types = {"t"}});
    EXPECT_EQ(decided_, 1);
    EXPECT_THAT(reply.leases, SizeIs(1));
    ASSERT_TRUE(reply.next_due);
    EXPECT_GT(*reply.next_due, std::chrono::minutes{59});
    EXPECT_LE(*reply.next_due, hours{1});
}

TEST_F(OnlyLane, AnotherLaneThatServesGoesFirstIfItIsMoreUrgent) {
    TaskId common = Make();
    NewTask urgent;
    urgent.priority = 250;
    TaskId more = Make(urgent);
    EXPECT_EQ(Take(1), std::vector{more});
    ExpectStoodBack();
    EXPECT_EQ(Take(1), std::vector{common});
}

TEST_F(OnlyLane, ALaneThatTheClaimerDoesNotServeIsNotTakenFrom) {
    Make();
    TaskId other = MakeOf("other");
    ClaimRequest request{.session = session_, .limit = 9, .types = {"other"}};
    std::vector<Lease> leases = store_->Claim(request).leases;
    ASSERT_THAT(leases, SizeIs(1));
    EXPECT_EQ(leases[0].task, other);
    ExpectStoodBack();
}

TEST_F(OnlyLane, APausedQueueIsNotTakenFrom) {
    Make();
    store_->SetQueue({.name = first_.queue, .paused = true}, "ann");
    EXPECT_THAT(Take(9), IsEmpty());
    ExpectStoodBack();
}

TEST_F(OnlyLane, WhatHasRunBeforeKeepsItsPlaceAndItsCount) {
    TaskId behind = Make();
    Settlement again = Done(first_);
    again.kind = Settlement::Kind::kRetry;
    again.end = AttemptEnd::kFailed;
    again.output.clear();
    again.error = TaskError{.message = "no", .retryable = true};
    ASSERT_EQ(store_->Settle({&again, 1}).at(0).kind, SettleReply::Kind::kAccepted);
    std::vector<Lease> leases = Claim(*store_, 9);
    ExpectStoodBack();
    ASSERT_THAT(leases, SizeIs(2));
    EXPECT_EQ(leases[0].task, first_.task);
    EXPECT_EQ(leases[0].attempt, 2);
    EXPECT_EQ(leases[1].task, behind);
}

TEST_F(OnlyLane, WhatIsPastItsStartIsNotTaken) {
    NewTask late;
    late.start_by = store_->Now() + milliseconds{1};
    Make(late);
    TaskId good = Make();
    while (store_->Now() <= *late.start_by) std::this_thread::yield();
    EXPECT_EQ(Take(9), std::vector{good});
    ExpectStoodBack();
}

TEST_F(OnlyLane, OfAnOrderKeyOnlyTheFirstIsTaken) {
    NewTask keyed;
    keyed.order_key = "k";
    TaskId head = Make(keyed);
    Make(keyed);
    std::vector<Lease> leases = Claim(*store_, 9);
    ExpectStoodBack();
    ASSERT_THAT(leases, SizeIs(1));
    EXPECT_EQ(leases[0].task, head);
    EXPECT_EQ(leases[0].placement.order_key, "k");
}

TEST_F(OnlyLane, WhatHasBecomeDueIsTaken) {
    NewTask soon;
    soon.delay = milliseconds{1};
    TaskId due = Make(soon);
    while (store_->Now() < store_->Get(due)->due_at) std::this_thread::yield();
    EXPECT_EQ(Take(9), std::vector{due});
    ExpectStoodBack();
}

TEST_F(OnlyLane, ALimitOfTheTypeHoldsFromTheMomentItIsSet) {
    Make();
    Make();
    ASSERT_TRUE(store_->Resources().Change({.name = "type:t", .capacity = 2}, "ann"));
    EXPECT_THAT(Take(9), SizeIs(1)) << "the first one still runs";
    ExpectStoodBack();
}

TEST_F(OnlyLane, TheOrderOfAQueueIsLeftToThePlan) {
    QueueOrder fair;
    fair.queue = first_.queue;
    fair.fair = true;
    ASSERT_TRUE(store_->Resources().SetOrder(fair, "ann"));
    TaskId made = Make();
    EXPECT_EQ(Take(9), std::vector{made});
    ExpectStoodBack();
}

TEST_F(OnlyLane, ASuspectThatWaitsIsTold) {
    SessionId dead = base::SystemRandom().MakeId<SessionId>();
    store_->OpenSession({.id = dead, .hostname = "d", .lease = hours{1}, .types = {"t"}});
    TaskId suspect = Make();
    ASSERT_THAT(store_->Claim({.session = dead, .limit = 1, .types = {"t"}}).leases, SizeIs(1));
    schema_->connection().Script(fmt::format(
        "UPDATE {}.session SET lease_until = now() WHERE id = '{}'",
        schema_->name(),
        dead.ToString()
    ));
    ReclaimReply reclaimed;
    do {
        reclaimed = store_->Reclaim({.by = session_});
    } while (reclaimed.tasks.empty());
    ASSERT_EQ(reclaimed.tasks.at(0).task, suspect);
    schema_->connection().Script(
        fmt::format("UPDATE {}.later SET due = now() - interval '1 second'", schema_->name())
    );
    Make();
    decided_ = 0;
    stood_back_ = 0;
    ClaimReply reply = store_->Claim({.session = session_, .limit = 9, .types = {"t"}});
    EXPECT_TRUE(reply.suspects_waiting);
    ExpectStoodBack();
}

TEST_F(OnlyLane, APolicyThatIsNotKnownHereIsReadByTheOrdinaryClaim) {
    auto other = OpenPostgresStore(options_);
    NewTask task{.type = "t"};
    task.retry = RetryPolicy{};
    task.retry->max_attempts = 77;
    other->Submit({&task, 1});
    std::vector<Lease> leases = Claim(*store_, 9);
    ExpectStoodBack();
    ASSERT_THAT(leases, SizeIs(1));
    EXPECT_EQ(leases[0].retry.max_attempts, 77);
}

TEST_F(OnlyLane, ASessionThatIsOverTakesNothing) {
    Make();
    store_->CloseSession(session_);
    ClaimReply reply = store_->Claim({.session = session_, .limit = 9, .types = {"t"}});
    EXPECT_FALSE(reply.session_live);
    EXPECT_THAT(reply.leases, IsEmpty());
}

// What the common claim has begun to take is counted by whoever sets a limit meanwhile.
TEST_F(OnlyLane, WhoSetsALimitWaitsForAClaimUnderWay) {
    Make();
    auto claimer = Connect(), watcher = Connect();
    pg::Sql sql(schema_->name());
    claimer->Script("BEGIN");
    claimer->Query(sql.claim_begin, {}, Commits::kNo);
    std::jthread setter([&] {
        EXPECT_TRUE(store_->Resources().Change({.name = "type:t", .capacity = 1}, "ann"));
    });
    WaitForALock(*watcher);
    claimer->Script("ROLLBACK");
    setter.join();
    EXPECT_THAT(Take(9), IsEmpty()) << "the first one runs";
}

// ---- the common success ------------------------------------------------------------------------

class PlainSuccess : public PostgresStoreTest {
protected:
    void SetUp() override {
        PostgresStoreTest::SetUp();
        if (IsSkipped()) return;
        // Where they take no room they are known to be empty.
        schema_->connection().Script(
            fmt::format("TRUNCATE {0}.progress, {0}.task_result", schema_->name())
        );
        Listen([this](std::string_view point) {
            if (point == "store_postgres.settled_plain") ++plain_;
        });
    }
    SettleReply::Kind Settle(const Settlement& outcome) {
        return store_->Settle({&outcome, 1}).at(0).kind;
    }
    Lease Run(NewTask task = {}) {
        Make(std::move(task));
        return Claim(*store_).at(0);
    }
    std::int64_t Count(const std::string& table) {
        const Statement count{
            "", fmt::format("SELECT count(*) FROM {}.{}", schema_->name(), table)};
        return schema_->connection().Query(count, {}, Commits::kNo).Int(0, 0);
    }
    // Settles it while `change`, done by another transaction that has its lease, is not yet
    // committed.
    SettleReply::Kind SettleBehind(const Lease& lease, std::function<void(Connection&)> change) {
        auto other = Connect(), watcher = Connect();
        other->Script("BEGIN");
        change(*other);
        SettleReply::Kind kind{};
        std::jthread settler([&] { kind = Settle(Done(lease)); });
        WaitForALock(*watcher);
        other->Script("COMMIT");
        settler.join();
        return kind;
    }

    int plain_ = 0;
};

TEST_F(PlainSuccess, IsRecordedAsTheOrdinaryStatementDoes) {
    auto run = [&](bool ordinary) {
        Settlement done = Done(Run());
        done.warning = ordinary;  // is said by the ordinary one only
        EXPECT_EQ(Settle(done), SettleReply::Kind::kAccepted);
        return store_->Get(done.task).value();
    };
    TaskRecord one = run(true);
    EXPECT_EQ(plain_, 0);
    TaskRecord other = run(false);
    EXPECT_EQ(plain_, 1);
    EXPECT_EQ(other.state, State::kComplete);
    EXPECT_EQ(other.output, one.output);
    EXPECT_EQ(other.attempt, one.attempt);
    EXPECT_EQ(other.generation, one.generation);
    EXPECT_EQ(other.input, one.input);
    std::vector<AttemptRecord> first = store_->Attempts(one.id),
                               second = store_->Attempts(other.id);
    ASSERT_THAT(second, SizeIs(first.size()));
    EXPECT_EQ(second.at(0).end, AttemptEnd::kComplete);
    EXPECT_EQ(second.at(0).session, session_);
    EXPECT_EQ(store_->Audit({.task = other.id}).size(), store_->Audit({.task = one.id}).size());
    for (const CheckFinding& finding : store_->Check()) EXPECT_TRUE(finding.ok) << finding.detail;
}

TEST_F(PlainSuccess, OneThatIsLostLeavesTheOthersToTheOrdinaryStatement) {
    Lease lease = Run();
    Settlement good = Done(lease), lost = Done(Run());
    lost.token = base::SystemRandom().MakeId<LeaseToken>();
    std::vector<SettleReply> replies = store_->Settle(std::vector{good, lost});
    EXPECT_EQ(plain_, 0);
    EXPECT_EQ(replies.at(0).kind, SettleReply::Kind::kAccepted);
    EXPECT_EQ(replies.at(1).kind, SettleReply::Kind::kLost);
    EXPECT_EQ(store_->Get(lost.task)->state, State::kInProgress);
}

TEST_F(PlainSuccess, ACancelThatCameWhileItWaitedIsCleanedUp) {
    Lease lease = Run();
    pg::Sql sql(schema_->name());
    auto kind = SettleBehind(lease, [&](Connection& other) {
        Params params;
        postgres::AddInts(params, std::vector{lease.task.value()});
        params.Text("not wanted");
        other.Query(sql.cancel_running, params, Commits::kNo);
    });
    EXPECT_EQ(kind, SettleReply::Kind::kAccepted);
    EXPECT_EQ(plain_, 0);
    EXPECT_EQ(store_->Get(lease.task)->state, State::kComplete);
    EXPECT_EQ(Count("cancel_note"), 0);
}

TEST_F(PlainSuccess, ALeaseThatWasTakenWhileItWaitedIsLost) {
    Lease lease = Run();
    auto kind = SettleBehind(lease, [&](Connection& other) {
        other.Script(fmt::format("DELETE FROM {}.lease", schema_->name()));
    });
    EXPECT_EQ(kind, SettleReply::Kind::kLost);
    EXPECT_EQ(Count("live"), 1);
    EXPECT_EQ(Count("history"), 0);
}

TEST_F(PlainSuccess, ProgressIsForgottenWithTheTask) {
    Lease lease = Run();
    Settlement done = Done(lease);
    store_->Renew(
        {.session = session_,
         .lease = hours{1},
         .progress = {{.task = lease.task, .token = lease.token, .progress = {.step = "half"}}}}
    );
    ASSERT_EQ(Count("progress"), 1);
    EXPECT_EQ(Settle(done), SettleReply::Kind::kAccepted);
    EXPECT_EQ(plain_, 0);
    EXPECT_EQ(Count("progress"), 0);
}

TEST_F(PlainSuccess, AUniqueKeyIsFree) {
    NewTask keyed;
    keyed.unique_key = "k";
    EXPECT_EQ(Settle(Done(Run(keyed))), SettleReply::Kind::kAccepted);
    EXPECT_EQ(plain_, 0);
    EXPECT_EQ(Count("live_key"), 0);
}

}  // namespace
}  // namespace stint::store
