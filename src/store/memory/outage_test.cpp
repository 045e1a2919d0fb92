// A dependency of ten thousand tasks is down for ten minutes: nobody loses an attempt, few try, and
// when it is back they do not all come at once.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/clock.h"
#include "base/random.h"
#include "store/memory/memory_store.h"
#include "store/resources.h"

namespace stint::store {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): units

TEST(Outage, TenThousandTasksLoseNoAttempt) {
    base::ManualClock clock;
    base::SeededRandom random{1};
    MemoryStore store{clock, random};
    constexpr int kTasks = 10'000;
    ResourceChange change{.name = "db"};
    change.breaker = Breaker{.failures = 1, .open_for = 1s, .open_at_most = 1min};
    ASSERT_TRUE(store.Resources().Change(change, "ann").has_value());
    NewTask task{.type = "t"};
    task.needs = Needs{{"db", 1}};
    std::vector<NewTask> tasks(kTasks, task);
    store.Submit(tasks);
    NewSession session{.id = random.MakeId<SessionId>(), .hostname = "h", .lease = 24h};
    store.OpenSession(session);

    const Time down_until = store.Now() + 10min;
    int starts_while_down = 0;
    int first_wave = 0;  // what starts before anybody knows that it works again
    int complete = 0;
    for (int turn = 0; turn < 1000 && complete < kTasks; ++turn) {
        ClaimReply reply = store.Claim({.session = session.id, .limit = 500, .types = {"t"}});
        const bool down = store.Now() < down_until;
        if (down) starts_while_down += static_cast<int>(reply.leases.size());
        if (!down && complete == 0) first_wave += static_cast<int>(reply.leases.size());
        for (const Lease& lease : reply.leases) {
            Settlement settlement{.task = lease.task, .token = lease.token, .session = session.id};
            settlement.output = "1";
            EXPECT_EQ(lease.attempt, 1);
            if (down) {
                settlement.kind = Settlement::Kind::kRelease;
                settlement.end = AttemptEnd::kReleased;
                settlement.unavailable = "db";
            }
            ASSERT_EQ(store.Settle({&settlement, 1})[0].kind, SettleReply::Kind::kAccepted);
            complete += down ? 0 : 1;
        }
        clock.Advance(reply.next_due.value_or(1s));
    }
    EXPECT_EQ(complete, kTasks);
    EXPECT_EQ(first_wave, 1) << "one tries it, then the others come";
    // The first batch, which started before it was known, and one for each time it was tried.
    EXPECT_LE(starts_while_down, 500 + 20);
    EXPECT_GE(starts_while_down, 500 + 5);
    for (const CheckFinding& finding : store.Check()) EXPECT_TRUE(finding.ok) << finding.what;
}

// The same, with many types and many nodes, whose attempts take time: longer than the breaker waits
// between two tries. What runs at once is looked at as well.
class LongOutage : public testing::Test {
protected:
    static constexpr int kTasks = 10'000;
    static constexpr int kTypes = 10;
    static constexpr int kNodes = 4;
    static constexpr int kSlots = 50;  // of a node
    static constexpr Duration kWork = 5s;

    struct Running {
        Lease lease;
        std::size_t node;
        Time until;
    };

    void SetUp() override {
        ResourceChange change{.name = "db"};
        change.breaker = Breaker{.failures = 1, .open_for = 1s, .open_at_most = 1min};
        ASSERT_TRUE(store_.Resources().Change(change, "ann").has_value());
        std::vector<NewTask> tasks;
        for (int i = 0; i < kTasks; ++i) {
            NewTask task{.type = TypeOf(i % kTypes)};
            task.needs = Needs{{"db", 1}};
            tasks.push_back(task);
        }
        for (std::size_t at = 0; at < tasks.size(); at += 1000) {
            store_.Submit(std::span(tasks).subspan(at, 1000));
        }
        for (int i = 0; i < kTypes; ++i) types_.push_back(TypeOf(i));
        for (int i = 0; i < kNodes; ++i) {
            NewSession session{
                .id = random_.MakeId<SessionId>(),
                .hostname = "node-" + std::to_string(i),
                .lease = 24h};
            store_.OpenSession(session);
            nodes_.push_back(session.id);
        }
        down_until_ = store_.Now() + 10min;
    }
    static std::string TypeOf(int i) { return "type-" + std::to_string(i); }
    bool Down() { return store_.Now() < down_until_; }

    void ClaimOnEachNode() {
        for (std::size_t node = 0; node < nodes_.size(); ++node) {
            auto busy = std::ranges::count(running_, node, &Running::node);
            ClaimRequest request{.session = nodes_[node], .types = types_};
            request.limit = kSlots - static_cast<int>(busy);
            if (request.limit == 0) continue;
            for (Lease& lease : store_.Claim(request).leases) {
                EXPECT_EQ(lease.attempt, 1);
                if (Down()) ++starts_while_down_;
                running_.push_back({std::move(lease), node, store_.Now() + kWork});
            }
        }
    }
    void EndWhatIsOver() {
        std::vector<Running> over;
        std::erase_if(running_, [&](Running& one) {
            if (one.until > store_.Now()) return false;
            over.push_back(std::move(one));
            return true;
        });
        for (const Running& one : over) {
            Settlement settlement{
                .task = one.lease.task, .token = one.lease.token, .session = nodes_[one.node]};
            settlement.output = "1";
            const bool down = Down();
            if (down) {
                settlement.kind = Settlement::Kind::kRelease;
                settlement.end = AttemptEnd::kReleased;
                settlement.unavailable = "db";
            }
            ASSERT_EQ(store_.Settle({&settlement, 1})[0].kind, SettleReply::Kind::kAccepted);
            complete_ += down ? 0 : 1;
        }
    }

    base::ManualClock clock_;
    base::SeededRandom random_{2};
    MemoryStore store_{clock_, random_};
    std::vector<SessionId> nodes_;
    std::vector<std::string> types_;
    std::vector<Running> running_;
    Time down_until_;
    int starts_while_down_ = 0;
    int complete_ = 0;
};

TEST_F(LongOutage, OneOfAllWorkersTriesAndNobodyLosesAnAttempt) {
    ClaimOnEachNode();
    EXPECT_EQ(running_.size(), std::size_t{kNodes} * kSlots);
    bool first_wave_over = false;
    for (int look = 0; look < 720 && complete_ == 0; ++look) {
        clock_.Advance(kWork);
        EndWhatIsOver();
        first_wave_over |= running_.empty();
        if (complete_ > 0) break;
        ClaimOnEachNode();
        if (first_wave_over) ASSERT_LE(running_.size(), 1U) << "look " << look;
    }
    EXPECT_GE(store_.Now(), down_until_);
    EXPECT_EQ(complete_, 1) << "the one that tried it; then the others come";
    EXPECT_LE(store_.Now(), down_until_ + 1min + kWork) << "no longer than between two tries";
    EXPECT_LE(starts_while_down_, kNodes * kSlots + 20);
    for (int i = 0; i < kTypes; ++i) {
        ListRequest request{.filter = {.types = {TypeOf(i)}}, .limit = 1000};
        for (const TaskRecord& task : store_.List(request).tasks) EXPECT_LE(task.attempt, 1);
    }
    // They come as there are slots, not all at once; and none of them is kept away any more.
    ClaimOnEachNode();
    EXPECT_EQ(running_.size(), std::size_t{kNodes} * kSlots);
    for (const CheckFinding& finding : store_.Check()) EXPECT_TRUE(finding.ok) << finding.what;
}

}  // namespace
}  // namespace stint::store
