// Several threads at once. Nothing is claimed twice, nothing is accepted twice, keys stay unique.
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "base/clock.h"
#include "base/guarded.h"
#include "conformance/conformance.h"

namespace stint::conformance {
namespace {

using Kind = Settlement::Kind;

class Concurrency : public Conformance {
protected:
    // Runs `work(i)` on `count` threads, released together.
    static void Together(int count, const std::function<void(int)>& work) {
        std::atomic<bool> go = false;
        std::vector<std::jthread> threads;
        for (int i = 0; i < count; ++i) {
            threads.emplace_back([&, i] {
                go.wait(false);
                work(i);
            });
        }
        go = true;
        go.notify_all();
    }
    // A store that loses tasks must fail the case, not hang it.
    bool InTime() const { return base::SystemClock().Now() < deadline_; }
    ClaimRequest Request(SessionId session, int limit) const {
        return {.session = session, .limit = limit, .types = {"t"}};
    }

private:
    const base::Instant deadline_ = base::SystemClock().Now() + 60s;
};
INSTANTIATE_TEST_SUITE_P(Store, Concurrency, testing::ValuesIn(Backends()), &BackendName);

TEST_P(Concurrency, EveryTaskIsClaimedAndCompletedOnce) {
    constexpr int kTasks = 2000;
    constexpr int kThreads = 4;
    MakeMany(kTasks);
    base::Guarded<std::map<TaskId, int>> claims;
    std::atomic<int> accepted = 0;
    std::vector<SessionId> sessions;
    for (int i = 0; i < kThreads; ++i) sessions.push_back(OpenSession());
    Together(kThreads, [&](int i) {
        std::shared_ptr<Store> handle = OpenAgain();
        while (accepted < kTasks && InTime()) {
            std::vector<Lease> leases = handle->Claim(Request(sessions[i], 10 + i)).leases;
            std::vector<Settlement> outcomes;
            for (const Lease& lease : leases) {
                claims.With([&](auto& all) { ++all[lease.task]; });
                outcomes.push_back(Outcome(lease, Kind::kComplete));
            }
            for (const SettleReply& reply : handle->Settle(outcomes)) {
                if (reply.kind == SettleReply::Kind::kAccepted) ++accepted;
            }
            if (leases.empty()) std::this_thread::yield();
        }
    });
    EXPECT_EQ(accepted, kTasks);
    claims.With([&](const auto& all) {
        EXPECT_THAT(all, SizeIs(kTasks));
        for (const auto& [task, count] : all) EXPECT_EQ(count, 1) << task.value();
    });
    auto counts = store.Counts({});
    EXPECT_EQ((counts[{State::kComplete, "default", "t"}]), kTasks);
}

TEST_P(Concurrency, SubmittersAndWorkersAtOnce) {
    constexpr int kEach = 300;
    std::atomic<int> completed = 0;
    std::vector<SessionId> sessions = {OpenSession(), OpenSession()};
    Together(4, [&](int i) {
        if (i < 2) {
            for (int n = 0; n < kEach; n += 10) {
                std::vector<NewTask> batch(10, NewTask{.type = "t", .priority = n % 256});
                for (const SubmitReply& reply : store.Submit(batch)) {
                    EXPECT_EQ(reply.kind, SubmitReply::Kind::kCreated);
                }
            }
            return;
        }
        while (completed < 2 * kEach && InTime()) {
            std::vector<Settlement> outcomes;
            for (const Lease& lease : store.Claim(Request(sessions[i - 2], 20)).leases) {
                outcomes.push_back(Outcome(lease, Kind::kComplete));
            }
            for (const SettleReply& reply : store.Settle(outcomes)) {
                EXPECT_EQ(reply.kind, SettleReply::Kind::kAccepted);
                ++completed;
            }
            if (outcomes.empty()) std::this_thread::yield();
        }
    });
    EXPECT_THAT(ListAll({.states = {State::kComplete}}), SizeIs(2 * kEach));
}

TEST_P(Concurrency, OneKeyIsOneTask) {
    constexpr int kRounds = 25;
    for (int round = 0; round < kRounds; ++round) {
        base::Guarded<std::vector<SubmitReply>> unique;
        base::Guarded<std::vector<SubmitReply>> idempotent;
        std::string key = "k" + std::to_string(round);
        Together(4, [&](int) {
            NewTask task{.type = "t", .unique_key = key};
            auto first = store.Submit({&task, 1}).at(0);
            unique.With([&](auto& all) { all.push_back(first); });
            NewTask other{.type = "u", .idempotency_key = key};
            auto second = store.Submit({&other, 1}).at(0);
            idempotent.With([&](auto& all) { all.push_back(second); });
        });
        for (auto* replies : {&unique, &idempotent}) {
            replies->With([](const std::vector<SubmitReply>& all) {
                int created = 0;
                for (const SubmitReply& reply : all) {
                    EXPECT_EQ(reply.id, all[0].id);
                    created += reply.kind == SubmitReply::Kind::kCreated ? 1 : 0;
                }
                EXPECT_EQ(created, 1);
            });
        }
    }
    EXPECT_THAT(ListAll(), SizeIs(2 * kRounds));
}

// Holders settle while sweepers take their leases away: each lease has one end.
TEST_P(Concurrency, SettleAndReclaimNeverBothWin) {
    constexpr int kTasks = 200;
    MakeMany(kTasks);
    SessionId session = OpenSession(1min);
    std::vector<Lease> leases = ClaimMany(kTasks, {.session = session});
    ASSERT_THAT(leases, SizeIs(kTasks));
    Advance(2min);
    std::atomic<int> accepted = 0;
    std::atomic<int> reclaimed = 0;
    Together(4, [&](int i) {
        if (i % 2 == 0) {
            for (std::size_t n = static_cast<std::size_t>(i) / 2; n < leases.size(); n += 2) {
                Settlement outcome = Outcome(leases[n], Kind::kComplete);
                SettleReply reply = store.Settle({&outcome, 1}).at(0);
                accepted += reply.kind == SettleReply::Kind::kAccepted ? 1 : 0;
            }
        } else {
            for (bool more = true; more;) {
                ReclaimReply reply = store.Reclaim({.limit = 7});
                reclaimed += static_cast<int>(reply.tasks.size());
                more = reply.more;
            }
        }
    });
    reclaimed += static_cast<int>(ReclaimAll().tasks.size());
    EXPECT_EQ(accepted + reclaimed, kTasks);
    EXPECT_THAT(ListAll({.states = {State::kComplete}}), SizeIs(accepted.load()));
    EXPECT_THAT(ListAll({.states = {State::kOpen}}), SizeIs(reclaimed.load()));
}

TEST_P(Concurrency, CancelAndClaimNeverBothWin) {
    constexpr int kTasks = 200;
    std::vector<TaskId> tasks = MakeMany(kTasks);
    SessionId session = Worker();
    base::Guarded<std::set<TaskId>> claimed;
    std::atomic<int> cancelled = 0;
    std::atomic<int> requested = 0;
    Together(3, [&](int i) {
        if (i == 0) {
            for (std::size_t n = tasks.size(); n-- > 0;) {
                CancelReply reply = store.Cancel({&tasks[n], 1}, "ann", "race").at(0);
                cancelled += reply.kind == CancelReply::Kind::kCancelled ? 1 : 0;
                requested += reply.kind == CancelReply::Kind::kRequested ? 1 : 0;
            }
        } else {
            for (int n = 0; n < 40; ++n) {
                for (const Lease& lease : store.Claim(Request(session, 3)).leases) {
                    claimed.With([&](auto& all) { EXPECT_TRUE(all.insert(lease.task).second); });
                }
            }
        }
    });
    EXPECT_EQ(cancelled + requested, kTasks);
    claimed.With([&](const auto& all) { EXPECT_THAT(all, SizeIs(requested.load())); });
}

}  // namespace
}  // namespace stint::conformance
