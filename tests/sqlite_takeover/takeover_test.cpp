#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <semaphore>
#include <thread>

#include "base/test_point.h"
#include "store/sqlite/protocol.h"
#include "store/sqlite/socket.h"
#include "store/sqlite/sqlite_store.h"

namespace stint::store {
namespace {

using namespace std::chrono_literals;

// The other process.
class Owner {
public:
    explicit Owner(const std::string& path) {
        int in[2];
        int out[2];
        EXPECT_EQ(pipe2(in, O_CLOEXEC), 0);
        EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
        const char* program = std::getenv("STINT_SQLITE_OWNER");
        std::string name = program != nullptr ? program : "./sqlite_owner";
        std::string file = path;
        char* argv[] = {name.data(), file.data(), nullptr};
        EXPECT_EQ(posix_spawn(&pid_, name.c_str(), &actions, nullptr, argv, environ), 0) << name;
        posix_spawn_file_actions_destroy(&actions);
        close(in[0]);
        close(out[1]);
        in_ = in[1];
        out_ = out[0];
        EXPECT_EQ(Hear(), "ready");
    }
    ~Owner() {
        Kill();
        close(in_);
        close(out_);
    }

    std::string Ask(const std::string& line) {
        std::string text = line + "\n";
        EXPECT_EQ(write(in_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
        return Hear();
    }
    std::string Hear() {
        std::string line;
        for (char c = 0; read(out_, &c, 1) == 1 && c != '\n';) line += c;
        return line;
    }
    void Stop() {
        kill(pid_, SIGSTOP);
        int status = 0;
        EXPECT_EQ(waitpid(pid_, &status, WUNTRACED), pid_);
        EXPECT_TRUE(WIFSTOPPED(status));
    }
    void GoOn() { kill(pid_, SIGCONT); }
    void Kill() {
        if (pid_ == 0) return;
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
        pid_ = 0;
    }

private:
    pid_t pid_ = 0;
    int in_ = -1;
    int out_ = -1;
};

class Takeover : public ::testing::Test {
protected:
    Takeover() {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "stint-takeover-XXXXXX").string();
        directory_ = mkdtemp(pattern.data());
        path_ = directory_ + "/a.db";
    }
    ~Takeover() override { std::filesystem::remove_all(directory_); }

    std::unique_ptr<Store> Open(bool force_client = false) {
        SqliteOptions options;
        options.path = path_;
        options.force_client = force_client;
        options.patience = 30s;
        return OpenSqliteStore(options);
    }
    // Which notices soon that its owner is stopped.
    std::unique_ptr<Store> OpenWatchful() {
        SqliteOptions options;
        options.path = path_;
        options.force_client = true;
        options.silence = 200ms;
        options.reply_timeout = 2s;
        return OpenSqliteStore(options);
    }
    static NewTask Task() {
        NewTask task;
        task.type = "t";
        return task;
    }
    static void ExpectSound(Store& store) {
        for (const CheckFinding& finding : store.Check()) {
            EXPECT_TRUE(finding.ok) << finding.what << ": " << finding.detail;
        }
    }

    // A write is in flight when its owner dies at `point`; returns whether it had happened.
    bool KillDuringSubmit(const std::string& point) {
        Owner owner(path_);
        auto client = Open();
        std::vector<NewTask> before(20, Task());
        std::vector<SubmitReply> acknowledged = client->Submit(before);
        NewTask last = Task();
        last.id = client->ReserveIds(1);

        EXPECT_EQ(owner.Ask("freeze " + point), "armed");
        auto in_flight = std::async(std::launch::async, [&] { return client->Submit({&last, 1}); });
        EXPECT_EQ(owner.Hear(), "frozen");
        owner.Kill();
        EXPECT_THROW(in_flight.get(), CommitUnknown);

        for (const SubmitReply& reply : acknowledged)
            EXPECT_TRUE(client->Get(reply.id).has_value());
        ExpectSound(*client);
        return client->Get(last.id).has_value();
    }

    std::string directory_;
    std::string path_;
};

TEST_F(Takeover, WriteInFlightBeforeCommitIsUnknownAndDidNotHappen) {
    EXPECT_FALSE(KillDuringSubmit("sqlite.before_commit"));
}

TEST_F(Takeover, WriteInFlightAfterCommitIsUnknownAndHappened) {
    EXPECT_TRUE(KillDuringSubmit("sqlite.committed"));
}

TEST_F(Takeover, ResubmitWithTheReservedIdIsTheSameTask) {
    Owner owner(path_);
    auto client = Open();
    NewTask task = Task();
    task.id = client->ReserveIds(1);
    ASSERT_EQ(owner.Ask("freeze sqlite.committed"), "armed");
    auto in_flight = std::async(std::launch::async, [&] { return client->Submit({&task, 1}); });
    ASSERT_EQ(owner.Hear(), "frozen");
    owner.Kill();
    EXPECT_THROW(in_flight.get(), CommitUnknown);
    auto again = client->Submit({&task, 1});
    EXPECT_EQ(again.front().kind, SubmitReply::Kind::kExisting);
    EXPECT_EQ(again.front().id, task.id);
}

TEST_F(Takeover, ReadsAndWritesAfterTheDeathGoOnUnnoticed) {
    Owner owner(path_);
    auto first = Open();
    auto second = Open();
    NewTask task = Task();
    TaskId id = first->Submit({&task, 1}).front().id;
    owner.Kill();
    EXPECT_TRUE(first->Get(id).has_value());   // takes over
    EXPECT_TRUE(second->Get(id).has_value());  // finds the new owner
    EXPECT_TRUE(second->Submit({&task, 1}).front().accepted());
    EXPECT_EQ(first->Write([](Transaction&) { return Result<void>(); }).has_value(), true);
    auto refused = second->Write([](Transaction&) { return Result<void>(); });
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, testing::HasSubstr("owned by another process"));
}

TEST_F(Takeover, ReadInFlightIsAskedAgain) {
    Owner owner(path_);
    auto client = Open();
    NewTask task = Task();
    TaskId id = client->Submit({&task, 1}).front().id;
    ASSERT_EQ(owner.Ask("freeze sqlite.server_answer"), "armed");
    auto in_flight = std::async(std::launch::async, [&] { return client->Get(id); });
    ASSERT_EQ(owner.Hear(), "frozen");
    owner.Kill();
    EXPECT_TRUE(in_flight.get().has_value());
}

TEST_F(Takeover, SessionsOfTheDeadAreRecoveredAtOnceAndTheLivingKeepTheirs) {
    Owner owner(path_);
    auto client = Open();
    std::vector<NewTask> tasks(2, Task());
    client->Submit(tasks);
    NewSession mine;
    mine.id = base::SystemRandom().MakeId<SessionId>();
    mine.hostname = "client";
    mine.lease = 1h;
    client->OpenSession(mine);
    ClaimRequest claim;
    claim.session = mine.id;
    claim.types = {"t"};
    auto held = client->Claim(claim).leases;
    ASSERT_EQ(held.size(), 1u);
    auto lost = TaskId::Parse(owner.Ask("claim"));
    ASSERT_TRUE(lost.has_value());
    owner.Kill();

    ReclaimReply reclaimed = client->Reclaim({});  // this process owns the store now
    ASSERT_EQ(reclaimed.tasks.size(), 1u);
    EXPECT_EQ(reclaimed.tasks.front().task, *lost);
    RenewRequest renew;
    renew.session = mine.id;
    renew.lease = 1h;
    renew.held = {{held.front().task, held.front().token}};
    RenewReply renewed = client->Renew(renew);
    EXPECT_TRUE(renewed.live);
    EXPECT_TRUE(renewed.lost.empty());

    // An exclusive session of this process does not end one of another process that lives.
    auto other = std::make_unique<Owner>(path_);  // a client now
    NewTask task = Task();
    client->Submit({&task, 1});
    ASSERT_NE(other->Ask("claim"), "none");
    NewSession exclusive = mine;
    exclusive.id = base::SystemRandom().MakeId<SessionId>();
    exclusive.exclusive = true;
    client->OpenSession(exclusive);
    reclaimed = client->Reclaim({});
    EXPECT_EQ(reclaimed.expired, std::vector{mine.id});
    // Once it is dead, it does.
    other->Kill();
    exclusive.id = base::SystemRandom().MakeId<SessionId>();
    client->OpenSession(exclusive);
    EXPECT_EQ(client->Reclaim({}).expired.size(), 2u);
}

TEST_F(Takeover, NothingAcknowledgedIsLostThroughRepeatedKills) {
    constexpr int kRounds = 8;
    auto owner = std::make_unique<Owner>(path_);
    auto client = Open(true);
    std::atomic<bool> stop = false;
    std::atomic<int> acknowledged_count = 0;
    std::vector<std::vector<TaskId>> acknowledged(3);
    std::vector<std::jthread> submitters;
    for (auto& mine : acknowledged) {
        submitters.emplace_back([&] {
            NewTask task = Task();
            while (!stop) {
                try {
                    mine.push_back(client->Submit({&task, 1}).front().id);
                    ++acknowledged_count;
                } catch (const CommitUnknown&) {
                    // May or may not be there; nobody was told that it is.
                } catch (const Unavailable&) {
                }
            }
        });
    }
    for (int round = 0; round < kRounds; ++round) {
        int target = acknowledged_count + 20;
        while (acknowledged_count < target) std::this_thread::yield();
        owner->Kill();
        owner = std::make_unique<Owner>(path_);
        ExpectSound(*client);
    }
    stop = true;
    submitters.clear();
    for (const auto& mine : acknowledged) {
        for (TaskId id : mine) EXPECT_TRUE(client->Get(id).has_value()) << id.value();
    }
}

TEST_F(Takeover, StaleSocketIsReplacedAndTheSocketIsPrivate) {
    { Owner owner(path_); }  // killed: its socket stays
    EXPECT_TRUE(std::filesystem::exists(path_ + ".sock"));
    auto store = Open();
    struct stat facts {};
    ASSERT_EQ(stat((path_ + ".sock").c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0600u);
    auto client = Open(true);
    EXPECT_EQ(client->Info().kind, "sqlite");
    client.reset();
    store.reset();
    EXPECT_FALSE(std::filesystem::exists(path_ + ".sock"));
}

TEST_F(Takeover, LongPathsWork) {
    std::string deep = directory_;
    for (int i = 0; i < 4; ++i) deep += "/" + std::string(60, static_cast<char>('a' + i));
    std::filesystem::create_directories(deep);
    path_ = deep + "/" + std::string(100, 'x') + ".db";
    auto owner = Open();
    auto client = Open(true);
    NewTask task = Task();
    TaskId id = client->Submit({&task, 1}).front().id;
    EXPECT_TRUE(owner->Get(id).has_value());
}

TEST_F(Takeover, TooManyClientsAreRefusedClearly) {
    SqliteOptions options;
    options.path = path_;
    options.max_clients = 1;
    auto owner = OpenSqliteStore(options);
    auto client = Open(true);
    try {
        Open(true);
        FAIL() << "a second client was admitted";
    } catch (const Unavailable& refused) {
        EXPECT_THAT(refused.what(), testing::HasSubstr("serves 1 connections already"));
    }
    EXPECT_EQ(client->Info().kind, "sqlite");
}

// ---- an owner that is stopped, not dead ----

TEST_F(Takeover, ReadFromAStoppedOwnerIsUnavailableSoon) {
    Owner owner(path_);
    auto client = OpenWatchful();
    NewTask task = Task();
    TaskId id = client->Submit({&task, 1}).front().id;
    owner.Stop();
    for (int call = 0; call < 2; ++call) {
        try {
            client->Get(id);
            FAIL() << "a stopped owner answered";
        } catch (const Unavailable& error) {
            EXPECT_THAT(error.what(), testing::HasSubstr("kill -CONT"));
        }
    }
    // It is known to be stopped: what was not sent did not happen.
    EXPECT_THROW(client->Submit({&task, 1}), Unavailable);
    owner.GoOn();
    EXPECT_TRUE(client->Get(id).has_value());
    EXPECT_EQ(client->List({}).tasks.size(), 1u);
}

TEST_F(Takeover, ChangeThatWasGivenUpIsNotMadeWhenTheOwnerGoesOn) {
    Owner owner(path_);
    auto client = OpenWatchful();
    NewTask task = Task();
    task.id = client->ReserveIds(1);
    ASSERT_EQ(owner.Ask("freeze sqlite.server_answer"), "armed");
    owner.Stop();
    EXPECT_THROW(client->Submit({&task, 1}), CommitUnknown);
    owner.GoOn();
    ASSERT_EQ(owner.Hear(), "frozen");  // it has read the request
    owner.Kill();
    EXPECT_FALSE(Open()->Get(task.id).has_value());
}

TEST_F(Takeover, OwnerThatIsBusyIsGivenItsTime) {
    Owner owner(path_);
    auto client = OpenWatchful();
    ASSERT_EQ(owner.Ask("freeze sqlite.before_commit"), "armed");
    auto began = base::SystemClock().Now();
    NewTask task = Task();
    EXPECT_THROW(client->Submit({&task, 1}), CommitUnknown);
    EXPECT_GE(base::SystemClock().Now() - began, 2s);
    EXPECT_EQ(client->Info().kind, "sqlite");
}

// Many threads that look for a stopped owner do not queue up behind each other.
TEST_F(Takeover, SearchForAStoppedOwnerIsShared) {
    Owner owner(path_);
    auto client = OpenWatchful();
    owner.Stop();
    EXPECT_THROW(client->Info(), Unavailable);
    auto began = base::SystemClock().Now();
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 40; ++i) {
            threads.emplace_back([&] { EXPECT_THROW(client->Info(), Unavailable); });
        }
    }
    EXPECT_LT(base::SystemClock().Now() - began, 40 * 200ms);
}

// ---- the owner's own troubles ----

TEST_F(Takeover, OwnerEndsAlthoughAClientTakesNoAnswer) {
    SqliteOptions options;
    options.path = path_;
    options.take_timeout = 100ms;
    auto owner = OpenSqliteStore(options);
    NewTask large = Task();
    large.input = '"' + std::string(limits::kInput - 2, 'x') + '"';
    TaskId id = owner->Submit({&large, 1}).front().id;
    std::binary_semaphore answering{0};
    base::SetTestPointListener([&](std::string_view point) {
        if (point == "sqlite.server_answer") answering.release();
    });
    auto client = lite::Connect(lite::SocketPath(path_), 1s);
    ASSERT_TRUE(client);
    std::string hello;
    ASSERT_EQ(lite::ReceiveFrame(*client, hello, 4096), lite::Received::kFrame);
    lite::Encoder out;
    out(lite::ClientHello{});
    ASSERT_TRUE(lite::SendFrame(*client, out.Take()));
    out(lite::BeginBy{INT64_MAX}, lite::Operation::kGet, id);
    ASSERT_TRUE(lite::SendFrame(*client, out.Take()));
    answering.acquire();
    base::SetTestPointListener({});
    owner.reset();
}

TEST_F(Takeover, OwnerWithoutDescriptorsWaitsForOne) {
    Owner owner(path_);
    ASSERT_EQ(owner.Ask("exhaust"), "exhausted");
    EXPECT_THROW(OpenWatchful(), Unavailable);
    EXPECT_LT(std::stoi(owner.Ask("release")), 100);
    EXPECT_EQ(OpenWatchful()->Info().kind, "sqlite");
}

TEST_F(Takeover, ChangeWhoseAnswerIsTooLargeIsUnknown) {
    SqliteOptions options;
    options.path = path_;
    options.answer_max = 500;
    auto owner = OpenSqliteStore(options);
    auto client = Open(true);
    std::vector<NewTask> many(100, Task());
    EXPECT_THROW(client->Submit(many), CommitUnknown);
    EXPECT_EQ(owner->List({}).tasks.size(), 100u);
    EXPECT_THROW(client->List({}), Unavailable);
}

TEST_F(Takeover, WithoutAnOwnerAForcedClientSaysSo) {
    SqliteOptions options;
    options.path = path_;
    options.force_client = true;
    options.patience = 50ms;
    EXPECT_THROW(OpenSqliteStore(options), Unavailable);
}

}  // namespace
}  // namespace stint::store
