// The model-based case: a long random sequence of operations runs on the store and, side by side,
// on the memory store; after each one the replies and the tasks must agree, and now and then the
// attempts and the audit log. The seed is printed with every failure; STINT_SEED sets it.
//
// Ids differ between the two, so tasks are compared by the order in which they were created. Most
// tasks have a priority of their own; those that share one are claimed in the order in which they
// were submitted. Times are whole minutes, and the memory store's clock follows that of a store
// whose clock runs, so the moments that pass for real decide nothing, however slow the machine.
#include <cstdlib>
#include <numeric>

#include "base/clock.h"
#include "conformance/conformance.h"
#include "store/memory/memory_store.h"

namespace stint::conformance {
namespace {

using Kind = Settlement::Kind;

class RandomWalk : public Conformance {
protected:
    static constexpr int kIdempotencyKeys = 8;
    static constexpr int kSharedPriorities = 3;
    static constexpr int kFirstOwnPriority = kIdempotencyKeys + kSharedPriorities;

    // A lease in both worlds.
    struct Pair {
        Lease mine;
        Lease theirs;
    };

    void Walk(std::uint64_t seed, int steps);
    void Start(std::uint64_t seed) {
        const char* given = std::getenv("STINT_SEED");
        seed_ = given != nullptr ? std::strtoull(given, nullptr, 10) : seed;
        dice_ = base::SeededRandom(seed_);
        priorities_.resize(256 - kFirstOwnPriority);
        std::iota(priorities_.begin(), priorities_.end(), kFirstOwnPriority);
        for (std::size_t i = priorities_.size(); i > 1; --i) {
            std::swap(priorities_[i - 1], priorities_[dice_.Below(i)]);
        }
    }

    // ---- dice ----
    int Upto(int bound) { return static_cast<int>(dice_.Below(static_cast<std::uint64_t>(bound))); }
    bool OneIn(int n) { return Upto(n) == 0; }
    Duration Minutes(int most) { return std::chrono::minutes{Upto(most)}; }
    std::string Letter(int count) { return std::string(1, static_cast<char>('a' + Upto(count))); }

    // ---- both worlds ----
    std::size_t IndexOf(TaskId id, bool theirs) const {
        const std::vector<TaskId>& ids = theirs ? their_ids_ : my_ids_;
        for (std::size_t i = 0; i < ids.size(); ++i) {
            if (ids[i] == id) return i;
        }
        return ids.size();
    }
    void ExpectSameTask(TaskId mine, TaskId theirs) {
        EXPECT_EQ(IndexOf(mine, false), IndexOf(theirs, true));
    }

    void Step();
    void DoSubmit();
    NewTask RandomIdempotent();
    void DoClaim();
    void DoSettle();
    void DoStaleSettle();
    void DoSession();
    void DoReclaim();
    void DoOperate();
    void DoEdit();
    void DoFinishBackground();
    void DoQueueOrType();
    void DoAdvance();
    void FollowTheStoresClock();
    void CompareTasks();
    void CompareHistories();
    Settlement RandomOutcome(const Lease& lease);

    std::uint64_t seed_ = 0;
    base::SeededRandom dice_{0};
    std::vector<int> priorities_;
    base::ManualClock clock_;
    Time their_start_{};
    Duration ahead_{};  // of their start, on the model's clock
    base::SeededRandom model_random_{1};
    MemoryStore model_{clock_, model_random_};
    std::vector<TaskId> my_ids_;
    std::vector<TaskId> their_ids_;
    std::vector<SessionId> sessions_;
    std::vector<Pair> held_;
    std::vector<Pair> stale_;
    std::string last_;
};
INSTANTIATE_TEST_SUITE_P(Store, RandomWalk, testing::ValuesIn(Backends()), &BackendName);

// A request that is likely to come again: one priority per key, which no other task has.
NewTask RandomWalk::RandomIdempotent() {
    int tenant = Upto(2);
    int key = Upto(kIdempotencyKeys / 2);
    return {
        .tenant = TenantId(1 + tenant),
        .type = "t",
        .input = OneIn(4) ? "1" : "2",
        .priority = tenant * kIdempotencyKeys / 2 + key,
        .retry = Fixed(2, 1min),
        .idempotency_key = "key " + std::to_string(key),
        .actor = "walk",
    };
}

void RandomWalk::DoSubmit() {
    if (priorities_.empty()) return;
    NewTask task{
        .tenant = TenantId(1 + Upto(2)),
        .type = Letter(3) == "a" ? "t" : "u",
        .input = std::to_string(Upto(3)),
        .priority = priorities_.back(),
        .retry = Fixed(1 + Upto(4), Minutes(5)),
        .actor = "walk",
    };
    if (OneIn(3)) task.priority = kIdempotencyKeys + Upto(kSharedPriorities);
    if (OneIn(2)) task.queue = Letter(3);
    if (OneIn(3)) task.timeout = 1min + Minutes(20);
    if (OneIn(4)) task.delay = Minutes(15);
    if (OneIn(4)) task.unique_key = Letter(4);
    if (OneIn(6)) task.throttle = Throttle{Letter(2), 1min + Minutes(10)};
    task.unique_policy = static_cast<UniquePolicy>(Upto(3));
    if (OneIn(5)) task = RandomIdempotent();
    std::vector<SubmitReply> mine = model_.Submit({&task, 1});
    if (OneIn(8)) task.id = store.ReserveIds(1);
    std::vector<SubmitReply> theirs = store.Submit({&task, 1});
    ASSERT_EQ(mine[0].kind, theirs[0].kind) << theirs[0].message << " / " << mine[0].message;
    EXPECT_EQ(mine[0].due_now, theirs[0].due_now);
    EXPECT_EQ(mine[0].id.valid(), theirs[0].id.valid());
    if (mine[0].kind == SubmitReply::Kind::kCreated) {
        my_ids_.push_back(mine[0].id);
        their_ids_.push_back(theirs[0].id);
    } else if (mine[0].id.valid()) {
        ExpectSameTask(mine[0].id, theirs[0].id);
    }
    if (task.priority == priorities_.back()) priorities_.pop_back();
}

void RandomWalk::DoClaim() {
    if (sessions_.empty()) return;
    ClaimRequest request{
        .session = sessions_[dice_.Below(sessions_.size())],
        .limit = 1 + Upto(5),
        .types = {"t", "u"},
        .suspect = OneIn(3),
    };
    if (OneIn(3)) request.queues = {Letter(3), "default"};
    if (OneIn(4)) request.types = {"u"};
    ClaimReply mine = model_.Claim(request);
    ClaimReply theirs = store.Claim(request);
    EXPECT_EQ(mine.session_live, theirs.session_live);
    ASSERT_EQ(mine.leases.size(), theirs.leases.size());
    for (std::size_t i = 0; i < mine.leases.size(); ++i) {
        ExpectSameTask(mine.leases[i].task, theirs.leases[i].task);
        EXPECT_EQ(mine.leases[i].attempt, theirs.leases[i].attempt);
        EXPECT_EQ(mine.leases[i].claim_no, theirs.leases[i].claim_no);
        EXPECT_EQ(mine.leases[i].crash_count, theirs.leases[i].crash_count);
        EXPECT_EQ(mine.leases[i].alone, theirs.leases[i].alone);
        EXPECT_EQ(mine.leases[i].input, theirs.leases[i].input);
        held_.push_back({mine.leases[i], theirs.leases[i]});
    }
    if (mine.leases.empty() && mine.session_live && !request.suspect) {
        EXPECT_EQ(mine.suspects_waiting, theirs.suspects_waiting);
        EXPECT_EQ(mine.next_due.has_value(), theirs.next_due.has_value());
    }
}

Settlement RandomWalk::RandomOutcome(const Lease& lease) {
    Settlement outcome = Outcome(lease, static_cast<Kind>(Upto(7)), Minutes(6));
    if (outcome.kind == Kind::kRetry && !AttemptsLeft(lease.retry, lease.attempt)) {
        outcome = Outcome(lease, Kind::kDead);
    }
    if (outcome.kind == Kind::kRetry && OneIn(3)) outcome.crashed = true;
    return outcome;
}

void RandomWalk::DoSettle() {
    if (held_.empty()) return;
    std::size_t at = dice_.Below(held_.size());
    Pair pair = held_[at];
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(at));
    stale_.push_back(pair);
    Settlement outcome = RandomOutcome(pair.mine);
    last_ += " " + std::to_string(static_cast<int>(outcome.kind));
    SettleReply mine = model_.Settle({&outcome, 1})[0];
    outcome.task = pair.theirs.task;
    outcome.token = pair.theirs.token;
    SettleReply theirs = store.Settle({&outcome, 1}).at(0);
    EXPECT_EQ(mine.kind, theirs.kind);
    EXPECT_TRUE(mine.kind != SettleReply::Kind::kAccepted || mine.state == theirs.state);
}

void RandomWalk::DoStaleSettle() {
    if (stale_.empty()) return;
    const Pair& pair = stale_[dice_.Below(stale_.size())];
    Settlement outcome = Outcome(pair.theirs, static_cast<Kind>(Upto(7)));
    EXPECT_EQ(store.Settle({&outcome, 1}).at(0).kind, SettleReply::Kind::kLost);
    auto mine = model_.SettledBy(pair.mine.task, pair.mine.token);
    auto theirs = store.SettledBy(pair.theirs.task, pair.theirs.token);
    ASSERT_EQ(mine.has_value(), theirs.has_value());
    EXPECT_TRUE(!mine || mine->kind == theirs->kind);
}

void RandomWalk::DoSession() {
    int what = Upto(4);
    if (what == 0 || sessions_.empty()) {
        NewSession session{
            .id = dice_.MakeId<SessionId>(), .hostname = Letter(2), .lease = 5min + Minutes(30)};
        model_.OpenSession(session);
        store.OpenSession(session);
        sessions_.push_back(session.id);
        if (sessions_.size() > 6) sessions_.erase(sessions_.begin());
        return;
    }
    SessionId session = sessions_[dice_.Below(sessions_.size())];
    if (what == 1 && OneIn(4)) {
        model_.CloseSession(session);
        store.CloseSession(session);
        return;
    }
    RenewRequest mine{.session = session, .lease = 5min + Minutes(30), .held = {}};
    RenewRequest theirs = mine;
    for (const Pair& pair : held_) {
        mine.held.push_back({pair.mine.task, pair.mine.token});
        theirs.held.push_back({pair.theirs.task, pair.theirs.token});
    }
    RenewReply my_reply = model_.Renew(mine);
    RenewReply their_reply = store.Renew(theirs);
    EXPECT_EQ(my_reply.live, their_reply.live);
    auto places = [](const RenewRequest& request, const std::vector<Held>& some) {
        std::vector<std::ptrdiff_t> at;
        for (const Held& one : some) {
            at.push_back(std::ranges::find(request.held, one) - request.held.begin());
        }
        return at;
    };
    EXPECT_THAT(
        places(theirs, their_reply.lost), UnorderedElementsAreArray(places(mine, my_reply.lost))
    );
    EXPECT_THAT(
        places(theirs, their_reply.cancel_requested),
        UnorderedElementsAreArray(places(mine, my_reply.cancel_requested))
    );
}

void RandomWalk::DoReclaim() {
    ReclaimRequest mine{.timeout_grace = 1min, .flights = {}};
    ReclaimRequest theirs = mine;
    if (OneIn(2) && !sessions_.empty()) {
        SessionId session = sessions_[dice_.Below(sessions_.size())];
        mine.flights[session] = theirs.flights[session] = {};
        for (const Pair& pair : held_) {
            if (OneIn(2)) continue;
            mine.flights[session].push_back(pair.mine.task);
            theirs.flights[session].push_back(pair.theirs.task);
        }
    }
    ReclaimReply my_reply = model_.Reclaim(mine);
    ReclaimReply their_reply = store.Reclaim(theirs);
    EXPECT_THAT(their_reply.expired, UnorderedElementsAreArray(my_reply.expired));
    std::map<std::size_t, Reclaimed> by_index;
    for (const Reclaimed& one : my_reply.tasks) by_index[IndexOf(one.task, false)] = one;
    EXPECT_EQ(their_reply.tasks.size(), my_reply.tasks.size());
    for (const Reclaimed& one : their_reply.tasks) {
        auto found = by_index.find(IndexOf(one.task, true));
        ASSERT_NE(found, by_index.end());
        EXPECT_EQ(one.to, found->second.to);
        EXPECT_EQ(one.end, found->second.end);
        EXPECT_EQ(one.suspect, found->second.suspect);
        EXPECT_EQ(one.from, found->second.from);
    }
}

void RandomWalk::DoOperate() {
    if (my_ids_.empty()) return;
    std::size_t at = dice_.Below(my_ids_.size());
    switch (Upto(3)) {
        case 0: {
            CancelReply mine = model_.Cancel({&my_ids_[at], 1}, "ann", "walk")[0];
            CancelReply theirs = store.Cancel({&their_ids_[at], 1}, "ann", "walk").at(0);
            EXPECT_EQ(mine.kind, theirs.kind);
            EXPECT_EQ(mine.state, theirs.state);
            break;
        }
        case 1: {
            RetryReply mine = model_.Retry({&my_ids_[at], 1}, "ann")[0];
            RetryReply theirs = store.Retry({&their_ids_[at], 1}, "ann").at(0);
            EXPECT_EQ(mine.kind, theirs.kind);
            EXPECT_EQ(mine.state, theirs.state);
            break;
        }
        default: {
            RetryReply mine = model_.Discard({&my_ids_[at], 1}, "ann")[0];
            RetryReply theirs = store.Discard({&their_ids_[at], 1}, "ann").at(0);
            EXPECT_EQ(mine.kind, theirs.kind);
            EXPECT_EQ(mine.state, theirs.state);
        }
    }
}

void RandomWalk::DoEdit() {
    if (my_ids_.empty()) return;
    std::size_t at = dice_.Below(my_ids_.size());
    TaskEdit edit;
    if (OneIn(2)) edit.queue = Letter(3);
    if (OneIn(2)) edit.input = std::to_string(10 + Upto(5));
    if (OneIn(2)) edit.delay = Minutes(10);
    if (OneIn(3)) edit.tags = std::vector<std::string>{Letter(3)};
    if (OneIn(3)) edit.timeout = 1min + Minutes(10);
    Result<void> mine = model_.Edit(my_ids_[at], edit, "ann");
    Result<void> theirs = store.Edit(their_ids_[at], edit, "ann");
    ASSERT_EQ(mine.has_value(), theirs.has_value());
    EXPECT_TRUE(mine || mine.error().code == theirs.error().code);
}

void RandomWalk::DoFinishBackground() {
    std::vector<std::size_t> outside;
    for (std::size_t i = 0; i < my_ids_.size(); ++i) {
        if (model_.Get(my_ids_[i])->state == State::kBackground) outside.push_back(i);
    }
    if (outside.empty()) return;
    std::size_t at = outside[dice_.Below(outside.size())];
    BackgroundFinish finish{
        .task = my_ids_[at], .actor = "outside", .success = OneIn(2), .error = Failure(OneIn(2))};
    std::optional<LeaseToken> their_token;
    for (const Pair& pair : stale_) {
        if (pair.mine.task != my_ids_[at] || OneIn(3)) continue;
        finish.token = pair.mine.token;
        their_token = pair.theirs.token;
    }
    Result<State> mine = model_.FinishBackground(finish);
    finish.task = their_ids_[at];
    finish.token = their_token;
    Result<State> theirs = store.FinishBackground(finish);
    ASSERT_EQ(mine.has_value(), theirs.has_value());
    if (mine) {
        EXPECT_EQ(*mine, *theirs);
    } else {
        EXPECT_EQ(mine.error().code, theirs.error().code);
    }
}

void RandomWalk::DoQueueOrType() {
    if (OneIn(2)) {
        QueueSettings settings{.name = Letter(3), .paused = OneIn(3)};
        if (OneIn(3)) settings.cap = 3 + Upto(20);
        model_.SetQueue(settings, "ann");
        store.SetQueue(settings, "ann");
    } else {
        TypeDefaults defaults{
            .type = OneIn(2) ? "t" : "u", .queue = Letter(3), .timeout = Minutes(3)};
        model_.PublishTypes({&defaults, 1});
        store.PublishTypes({&defaults, 1});
    }
}

void RandomWalk::FollowTheStoresClock() {
    auto passed = std::chrono::duration_cast<Duration>(store.Now() - their_start_);
    if (passed <= ahead_) return;
    clock_.Advance(passed - ahead_);
    ahead_ = passed;
}

void RandomWalk::DoAdvance() {
    Duration by = std::chrono::minutes{1 + Upto(OneIn(10) ? 300 : 8)};
    clock_.Advance(by);
    ahead_ += by;
    Advance(by);
    if (!OneIn(3)) return;
    HousekeepReply mine = model_.Housekeep({});
    HousekeepReply theirs = store.Housekeep({});
    EXPECT_EQ(mine.expired_tasks, theirs.expired_tasks);
    EXPECT_EQ(mine.expired_keys, theirs.expired_keys);
}

void RandomWalk::Step() {
    FollowTheStoresClock();
    static constexpr struct {
        int weight;
        const char* name;
        void (RandomWalk::*run)();
    } kSteps[] = {
        {20, "submit", &RandomWalk::DoSubmit},
        {25, "claim", &RandomWalk::DoClaim},
        {25, "settle", &RandomWalk::DoSettle},
        {3, "stale settle", &RandomWalk::DoStaleSettle},
        {8, "session", &RandomWalk::DoSession},
        {6, "reclaim", &RandomWalk::DoReclaim},
        {6, "operate", &RandomWalk::DoOperate},
        {5, "edit", &RandomWalk::DoEdit},
        {6, "finish background", &RandomWalk::DoFinishBackground},
        {2, "queue or type", &RandomWalk::DoQueueOrType},
        {14, "advance", &RandomWalk::DoAdvance},
    };
    int total = 0;
    for (const auto& step : kSteps) total += step.weight;
    int draw = Upto(total);
    for (const auto& step : kSteps) {
        if ((draw -= step.weight) >= 0) continue;
        last_ = step.name;
        (this->*step.run)();
        return;
    }
}

void RandomWalk::CompareTasks() {
    std::vector<TaskRecord> listed = ListAll();
    ASSERT_EQ(listed.size(), their_ids_.size());
    const Time my_now = model_.Now();
    const Time their_now = store.Now();
    for (const TaskRecord& theirs : listed) {
        std::size_t at = IndexOf(theirs.id, true);
        ASSERT_LT(at, my_ids_.size());
        SCOPED_TRACE("task " + std::to_string(at));
        TaskRecord mine = *model_.Get(my_ids_[at]);
        ASSERT_EQ(StateName(theirs.state), StateName(mine.state));
        EXPECT_EQ(theirs.tenant, mine.tenant);
        EXPECT_EQ(theirs.type, mine.type);
        EXPECT_EQ(theirs.queue, mine.queue);
        EXPECT_EQ(theirs.priority, mine.priority);
        EXPECT_EQ(theirs.input, mine.input);
        EXPECT_EQ(theirs.output, mine.output);
        EXPECT_EQ(theirs.attempt, mine.attempt);
        EXPECT_EQ(theirs.max_attempts, mine.max_attempts);
        EXPECT_EQ(theirs.claim_no, mine.claim_no);
        EXPECT_EQ(theirs.generation, mine.generation);
        EXPECT_EQ(theirs.crash_count, mine.crash_count);
        EXPECT_EQ(theirs.timeout, mine.timeout);
        EXPECT_EQ(theirs.type_known, mine.type_known);
        EXPECT_EQ(theirs.unique_key, mine.unique_key);
        EXPECT_EQ(theirs.idempotency_key, mine.idempotency_key);
        EXPECT_EQ(theirs.session, mine.session);
        EXPECT_THAT(theirs.tags, UnorderedElementsAreArray(mine.tags));
        EXPECT_EQ(theirs.reason.starts_with("quarantined"), mine.reason.starts_with("quarantined"));
        if (mine.state != State::kCancelled) {
            EXPECT_EQ(theirs.error.has_value(), mine.error.has_value());
        }
        if (!IsTerminal(mine.state)) {
            EXPECT_EQ(theirs.suspect, mine.suspect);
            EXPECT_EQ(theirs.cancel_requested, mine.cancel_requested);
        }
        if (mine.state == State::kOpen || mine.state == State::kError) {
            EXPECT_TRUE(Near(theirs.due_at, their_now + (mine.due_at - my_now)));
        }
    }
}

void RandomWalk::CompareHistories() {
    for (std::size_t at = 0; at < my_ids_.size(); ++at) {
        SCOPED_TRACE("history of task " + std::to_string(at));
        std::vector<AuditEntry> mine = model_.Audit({.task = my_ids_[at]});
        std::vector<AuditEntry> theirs = store.Audit({.task = their_ids_[at]});
        ASSERT_EQ(mine.size(), theirs.size());
        for (std::size_t i = 0; i < mine.size(); ++i) {
            EXPECT_EQ(EventName(theirs[i].event), EventName(mine[i].event));
            EXPECT_EQ(theirs[i].from, mine[i].from);
            EXPECT_EQ(theirs[i].to, mine[i].to);
            EXPECT_EQ(theirs[i].attempt, mine[i].attempt);
            EXPECT_EQ(theirs[i].generation, mine[i].generation);
            EXPECT_EQ(theirs[i].actor, mine[i].actor);
            EXPECT_EQ(theirs[i].session, mine[i].session);
        }
        std::vector<AttemptRecord> my_attempts = model_.Attempts(my_ids_[at]);
        std::vector<AttemptRecord> their_attempts = store.Attempts(their_ids_[at]);
        ASSERT_EQ(my_attempts.size(), their_attempts.size());
        for (std::size_t i = 0; i < my_attempts.size(); ++i) {
            EXPECT_EQ(AttemptEndName(their_attempts[i].end), AttemptEndName(my_attempts[i].end));
            EXPECT_EQ(their_attempts[i].attempt, my_attempts[i].attempt);
            EXPECT_EQ(their_attempts[i].generation, my_attempts[i].generation);
            EXPECT_EQ(their_attempts[i].session, my_attempts[i].session);
            EXPECT_EQ(their_attempts[i].alone, my_attempts[i].alone);
        }
    }
}

void RandomWalk::Walk(std::uint64_t seed, int steps) {
    Start(seed);
    their_start_ = store.Now();
    for (int step = 0; step < steps; ++step) {
        Step();
        SCOPED_TRACE(
            "seed " + std::to_string(seed_) + ", step " + std::to_string(step) + ": " + last_
        );
        CompareTasks();
        if (step % 50 == 49) CompareHistories();
        ASSERT_FALSE(HasFailure());
    }
}

TEST_P(RandomWalk, AgreesWithTheMemoryStoreStepByStep) {
    Walk(7, 700);
    // The walk went somewhere.
    EXPECT_GT(my_ids_.size(), 50u);
    std::map<State, int> states;
    for (TaskId id : my_ids_) ++states[model_.Get(id)->state];
    for (State state : {State::kComplete, State::kDead, State::kCancelled})
        EXPECT_GT(states[state], 0);
}

TEST_P(RandomWalk, AgreesOnASecondWay) {
    Walk(101, 300);
}
TEST_P(RandomWalk, AgreesOnAThirdWay) {
    Walk(202, 300);
}
TEST_P(RandomWalk, AgreesOnAFourthWay) {
    Walk(303, 300);
}

}  // namespace
}  // namespace stint::conformance
