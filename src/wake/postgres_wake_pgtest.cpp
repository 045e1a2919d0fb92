#include "wake/postgres_wake.h"

#include <gmock/gmock.h>

#include "support/postgres.h"

namespace stint::wake {
namespace {

using std::chrono::seconds;

// What a subscriber heard, and a way to wait for it.
class Ear {
public:
    explicit Ear(Wake& wake) : wake_(wake) {
        number_ = wake.Subscribe([this](const Hint& hint) {
            std::lock_guard guard(mutex_);
            heard_.push_back(hint);
            changed_.notify_all();
        });
    }
    ~Ear() { wake_.Unsubscribe(number_); }
    template <class Matches>
    bool Hears(Matches matches) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, seconds{20}, [&] {
            return std::any_of(heard_.begin(), heard_.end(), matches);
        });
    }
    bool HearsQueue(const std::string& queue) {
        return Hears([&](const Hint& hint) {
            return hint.kind == Hint::Kind::kTaskAvailable && hint.queue == queue;
        });
    }

private:
    Wake& wake_;
    int number_ = 0;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Hint> heard_;
};

class PostgresWakeTest : public ::testing::Test {
protected:
    void SetUp() override {
        SKIP_WITHOUT_POSTGRES();
        options_.url = stint::testing::TestPostgresUrl();
        options_.schema = "wake_test";
        options_.retry_every = std::chrono::milliseconds{50};
    }
    PostgresWakeOptions options_;
};

TEST_F(PostgresWakeTest, AnotherProcessHearsOfQueuesAndOfFinishedTasks) {
    PostgresWake speaker(options_), listener(options_);
    Ear ear(listener);
    // The first thing that is heard is that listening began: look once.
    ASSERT_TRUE(ear.HearsQueue(""));
    std::vector<Hint> hints = {
        {Hint::Kind::kTaskAvailable, "it's \"q\"", {}},
        {Hint::Kind::kTaskFinished, {}, TaskId(77)},
        {Hint::Kind::kTaskFinished, {}, TaskId(78)},
        {Hint::Kind::kEventPublished, {}, {}}};
    speaker.Signal(hints);
    EXPECT_TRUE(ear.HearsQueue("it's \"q\""));
    EXPECT_TRUE(ear.Hears([](const Hint& hint) { return hint.kind == Hint::Kind::kEventPublished; })
    );
    for (TaskId task : {TaskId(77), TaskId(78)}) {
        EXPECT_TRUE(ear.Hears([&](const Hint& hint) {
            return hint.kind == Hint::Kind::kTaskFinished && hint.task == task;
        }));
    }
}

TEST_F(PostgresWakeTest, OtherSchemasAreNotDisturbed) {
    PostgresWakeOptions others = options_;
    others.schema = "wake_test_other";
    PostgresWake speaker(options_), listener(options_), other(others), other_speaker(others);
    Ear ear(listener), other_ear(other);
    ASSERT_TRUE(ear.HearsQueue(""));
    ASSERT_TRUE(other_ear.HearsQueue(""));
    Hint hint{Hint::Kind::kTaskAvailable, "one", {}}, last{Hint::Kind::kTaskAvailable, "two", {}};
    speaker.Signal({&hint, 1});
    EXPECT_TRUE(ear.HearsQueue("one"));
    other_speaker.Signal({&last, 1});
    bool disturbed = false;
    EXPECT_TRUE(other_ear.Hears([&](const Hint& heard) {
        disturbed |= heard.queue == "one";
        return heard.queue == "two";
    }));
    EXPECT_FALSE(disturbed);
}

TEST_F(PostgresWakeTest, WhatOthersKnowIsToldHereOnly) {
    PostgresWake speaker(options_), listener(options_);
    Ear ear(listener), here(speaker);
    ASSERT_TRUE(ear.HearsQueue(""));
    Hint known{Hint::Kind::kTaskAvailable, "known", {}, true};
    Hint news{Hint::Kind::kTaskAvailable, "news", {}};
    speaker.Signal({&known, 1});
    EXPECT_TRUE(here.HearsQueue("known"));
    speaker.Signal({&news, 1});
    bool again = false;
    EXPECT_TRUE(ear.Hears([&](const Hint& heard) {
        again |= heard.queue == "known";
        return heard.queue == "news";
    }));
    EXPECT_FALSE(again);
}

TEST_F(PostgresWakeTest, AfterABrokenConnectionEverybodyLooksOnceAndHearsAgain) {
    PostgresWake speaker(options_), listener(options_);
    auto first = std::make_unique<Ear>(listener);
    ASSERT_TRUE(first->HearsQueue(""));
    Ear again(listener);
    postgres::ConnectOptions connect;
    connect.url = options_.url;
    postgres::Connection::Open(connect)->Script(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'stint "
        "wake'"
    );
    ASSERT_TRUE(again.HearsQueue(""));
    Hint hint{Hint::Kind::kTaskAvailable, "after", {}};
    // The sender looks whether its connection is still there before it uses it.
    speaker.Signal({&hint, 1});
    EXPECT_TRUE(again.HearsQueue("after"));
}

TEST_F(PostgresWakeTest, WithoutAServerTheProcessStillHearsItself) {
    options_.url = "postgres://127.0.0.1:1/nobody";
    std::mutex mutex;
    std::string complaint;
    options_.log = [&](const LogRecord& record) {
        std::lock_guard guard(mutex);
        complaint = std::string(record.message);
    };
    PostgresWake wake(options_);
    Ear ear(wake);
    Hint hint{Hint::Kind::kTaskAvailable, "here", {}};
    wake.Signal({&hint, 1});
    EXPECT_TRUE(ear.HearsQueue("here"));
}

}  // namespace
}  // namespace stint::wake
