#include "wake/file_wake.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>

namespace stint::wake {
namespace {

using namespace std::chrono_literals;

class FileWakeTest : public ::testing::Test {
protected:
    void SetUp() override {
        std::string name = ::testing::TempDir() + "/file_wake_XXXXXX";
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        directory_ = name;
    }
    void TearDown() override { std::filesystem::remove_all(directory_); }

    void Append(const std::string& file) {
        std::ofstream stream(directory_ + "/" + file, std::ios::app);
        stream << "x";
    }

    // Waits until `count` hints of the kind have been heard; false after ten seconds.
    bool Heard(const int& number, int count) {
        std::unique_lock lock(mutex_);
        return heard_.wait_for(lock, 10s, [&] { return number >= count; });
    }

    void Listen(Wake& wake) {
        wake.Subscribe([this](const Hint& hint) {
            std::lock_guard guard(mutex_);
            using Kind = Hint::Kind;
            ++(hint.kind == Kind::kTaskAvailable  ? available_
               : hint.kind == Kind::kTaskFinished ? finished_
                                                  : published_);
            heard_.notify_all();
        });
    }

    std::string directory_;
    std::mutex mutex_;
    std::condition_variable heard_;
    int available_ = 0;  // guarded by mutex_
    int finished_ = 0;   // guarded by mutex_
    int published_ = 0;  // guarded by mutex_
};

TEST_F(FileWakeTest, ACommitOfAnotherProcessIsHeardAsEveryKind) {
    FileWake wake({.path = directory_ + "/store.db", .log = {}});
    Listen(wake);
    Append("store.db-wal");
    EXPECT_TRUE(Heard(available_, 1));
    EXPECT_TRUE(Heard(finished_, 1));
    EXPECT_TRUE(Heard(published_, 1));
}

TEST_F(FileWakeTest, TheLogMayVanishAndComeBack) {
    FileWake wake({.path = directory_ + "/store.db", .log = {}});
    Listen(wake);
    Append("store.db-wal");
    ASSERT_TRUE(Heard(available_, 1));
    std::filesystem::remove(directory_ + "/store.db-wal");
    int before = 0;
    {
        std::lock_guard guard(mutex_);
        before = available_;
    }
    Append("store.db-wal");
    EXPECT_TRUE(Heard(available_, before + 1));
}

TEST_F(FileWakeTest, OtherFilesAreNotHeard) {
    FileWake wake({.path = directory_ + "/store.db", .log = {}});
    Listen(wake);
    Append("other.db-wal");
    Append("store.db");
    Append("store.db-wal");  // heard after the others were read
    ASSERT_TRUE(Heard(available_, 1));
    std::lock_guard guard(mutex_);
    EXPECT_EQ(available_, 1);
}

TEST_F(FileWakeTest, AMissingDirectoryIsSaidOnceAndBreaksNothing) {
    std::atomic<int> warnings = 0;
    FileWake wake({
        .path = directory_ + "/missing/store.db",
        .log = [&](const LogRecord& record) { warnings += record.level == LogLevel::kWarn; },
    });
    Listen(wake);
    Hint hint{.kind = Hint::Kind::kTaskAvailable, .queue = "a", .task = {}};
    wake.Signal({&hint, 1});
    EXPECT_TRUE(Heard(available_, 1));
    EXPECT_EQ(warnings, 1);
}

}  // namespace
}  // namespace stint::wake
