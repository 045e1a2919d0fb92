#include "postgres/pool.h"

#include <gtest/gtest.h>

#include <optional>

#include "postgres/listener.h"
#include "postgres/transaction.h"
#include "support/postgres.h"

namespace stint::postgres {
namespace {

const Statement kPid{"", "SELECT pg_backend_pid()"};

class PoolTest : public ::testing::Test {
protected:
    void SetUp() override {
        SKIP_WITHOUT_POSTGRES();
        options_.connect.url = stint::testing::TestPostgresUrl();
        options_.size = 2;
        options_.acquire_timeout = std::chrono::milliseconds{100};
    }
    static std::int64_t Pid(const Pool::Loan& loan) {
        return loan->Query(kPid, {}, Commits::kNo).Int(0, 0);
    }
    PoolOptions options_;
};

TEST_F(PoolTest, AReturnedConnectionIsUsedAgain) {
    Pool pool(options_);
    std::int64_t first = Pid(pool.Acquire());
    EXPECT_EQ(Pid(pool.Acquire()), first);
    EXPECT_EQ(pool.open(), 1);
}

TEST_F(PoolTest, TheReservedOneIsThereWhenTheOthersAreOut) {
    Pool pool(options_);
    Pool::Loan a = pool.Acquire(), b = pool.Acquire();
    EXPECT_THROW(pool.Acquire(), ConnectionLost);
    Pool::Loan reserved = pool.AcquireReserved();
    EXPECT_GT(Pid(reserved), 0);
}

TEST_F(PoolTest, AKilledIdleConnectionIsReplaced) {
    Pool pool(options_);
    std::int64_t first = Pid(pool.Acquire());
    auto other = Connection::Open(options_.connect);
    other->Query(
        Statement{"", "SELECT pg_terminate_backend($1::int4, 10000)"},
        Params().Int4(static_cast<int>(first)),
        Commits::kNo
    );
    EXPECT_NE(Pid(pool.Acquire()), first);
}

TEST_F(PoolTest, ABrokenConnectionDoesNotComeBack) {
    Pool pool(options_);
    {
        Pool::Loan loan = pool.Acquire();
        EXPECT_THROW(
            loan->Query(
                Statement{"", "SELECT pg_terminate_backend(pg_backend_pid())"}, {}, Commits::kNo
            ),
            ConnectionLost
        );
    }
    EXPECT_EQ(pool.open(), 0);
    EXPECT_GT(Pid(pool.Acquire()), 0);
}

TEST_F(PoolTest, AnAbandonedTransactionDoesNotComeBack) {
    Pool pool(options_);
    { pool.Acquire()->Script("BEGIN"); }
    EXPECT_EQ(pool.open(), 0);
}

// ---- listening ---------------------------------------------------------------------------------

class ListenerTest : public PoolTest {};

TEST_F(ListenerTest, HearsWhatOthersSay) {
    Listener listener(options_.connect, {"hear me", "other"});
    ASSERT_TRUE(listener.Open());
    Connection::Open(options_.connect)->Script("NOTIFY \"hear me\", 'q1'");
    std::vector<Notification> heard;
    for (int i = 0; i < 100 && heard.empty(); ++i)
        heard = listener.Wait(std::chrono::milliseconds{100});
    ASSERT_EQ(heard.size(), 1u);
    EXPECT_EQ(heard[0].channel, "hear me");
    EXPECT_EQ(heard[0].payload, "q1");
    listener.Heartbeat();
}

TEST_F(ListenerTest, AnInterruptEndsTheWait) {
    Listener listener(options_.connect, {"quiet"});
    ASSERT_TRUE(listener.Open());
    listener.Interrupt();
    base::Instant before = base::SystemClock().Now();
    EXPECT_TRUE(listener.Wait(std::chrono::seconds{30}).empty());
    EXPECT_LT(base::SystemClock().Now() - before, std::chrono::seconds{20});
}

TEST_F(ListenerTest, AServerThatForgotUsIsNoticedByTheHeartbeat) {
    Listener listener(options_.connect, {"forgotten"});
    ASSERT_TRUE(listener.Open());
    auto other = Connection::Open(options_.connect);
    other->Script(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE query LIKE 'UNLISTEN%'"
    );
    EXPECT_THROW(listener.Heartbeat(), ConnectionLost);
    EXPECT_FALSE(listener.open());
    EXPECT_TRUE(listener.Open());
}

TEST_F(ListenerTest, SaysWhyItCannot) {
    options_.connect.url = "postgres://127.0.0.1:1/nobody";
    Listener listener(options_.connect, {"x"});
    Result<void> opened = listener.Open();
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace stint::postgres
