// SafeFail: outcomes reach the store through any trouble, fenced.
#include "engine/settle.h"

#include <gmock/gmock.h>

#include <fstream>
#include <set>

#include "base/planted_bug.h"
#include "base/thread.h"
#include "support/engine_rig.h"

namespace stint::engine {
namespace {

using model::State;

struct SettleRig : Rig {
    SettleRig() {
        options.slots = 4;
        Handle("t", [](Context&, std::string_view) { return Done("1"); });
    }
    // Claimed and run, the outcome still in our hands.
    TaskId Finish() {
        TaskId id = Submit("t");
        worker->ClaimOnce();
        worker->RunOneAttempt();
        EXPECT_EQ(StateOf(id), State::kInProgress);
        return id;
    }
    void WaitOutBreaker() { clock.Advance(5s); }
};

TEST(Settle, OneTripForAllThatIsQueued) {
    SettleRig rig;
    rig.Open();
    for (int i = 0; i < 4; ++i) rig.Submit("t");
    rig.worker->ClaimOnce();
    while (rig.worker->RunOneAttempt()) {
    }
    EXPECT_EQ(rig.worker->unsettled(), 4);
    rig.worker->SettleOnce();
    EXPECT_EQ(rig.store.calls("settle"), 1);
    EXPECT_EQ(rig.worker->unsettled(), 0);
    EXPECT_EQ(rig.metrics.completed, 4u);
}

// The settling thread, the claimer, the sweeper and whoever stops the worker all may settle. The
// one that is through tells what ended while the next is at it already: each tells of its own.
TEST(Settle, WhoeverSettlesTellsOfItsOwnTasksWhileOthersSettle) {
    constexpr int kTasks = 200;
    ThreadedRig rig;
    rig.options.slots = kTasks;
    rig.Handle("t", [](Context&, std::string_view) { return Done("1"); });
    std::mutex mutex;
    std::multiset<TaskId> told;
    rig.wake.Subscribe([&](const wake::Hint& hint) {
        if (hint.kind != wake::Hint::Kind::kTaskFinished) return;
        std::lock_guard guard(mutex);
        told.insert(hint.task);
    });
    rig.Open();
    std::multiset<TaskId> submitted;
    for (int i = 0; i < kTasks; ++i) submitted.insert(rig.Submit("t"));
    {
        std::vector<std::jthread> settlers;
        for (int i = 0; i < 3; ++i) {
            settlers.push_back(base::StartThread([&](const std::stop_token& stop) {
                while (!stop.stop_requested()) rig.worker->SettleOnce();
            }));
        }
        for (int ran = 0; ran < kTasks;) {
            rig.worker->ClaimOnce();
            while (rig.worker->RunOneAttempt()) ++ran;
        }
        EXPECT_TRUE(Eventually([&] {
            std::lock_guard guard(mutex);
            return told.size() >= kTasks;
        }));
    }
    EXPECT_EQ(told, submitted);
}

TEST(Settle, AnUnknownCommitThatHappenedIsFound) {
    SettleRig rig;
    rig.Open();
    TaskId id = rig.Finish();
    rig.store.Next("settle", Trouble::kUnknownAfter);
    rig.worker->SettleOnce();
    EXPECT_EQ(rig.worker->unsettled(), 1);
    rig.WaitOutBreaker();
    rig.worker->SettleOnce();
    EXPECT_EQ(rig.store.calls("settle"), 1) << "not sent again";
    EXPECT_EQ(rig.metrics.completed, 1u);
    EXPECT_EQ(rig.metrics.lost, 0u);
    EXPECT_EQ(rig.StateOf(id), State::kComplete);
}

TEST(Settle, AnUnknownCommitThatDidNotHappenIsSentAgain) {
    SettleRig rig;
    rig.Open();
    TaskId id = rig.Finish();
    rig.store.Next("settle", Trouble::kUnknownBefore);
    rig.worker->SettleOnce();
    rig.WaitOutBreaker();
    rig.worker->SettleOnce();
    EXPECT_EQ(rig.StateOf(id), State::kComplete);
    EXPECT_EQ(rig.Get(id).attempt, 1);
}

TEST(Settle, PlantedUnknownIsFailureLosesADoneTask) {
    SettleRig rig;
    rig.Open();
    TaskId id = rig.Finish();
    base::PlantBug(base::Bug::kUnknownIsFailure);
    rig.store.Next("settle", Trouble::kUnknownBefore);
    rig.worker->SettleOnce();
    base::PlantBug(base::Bug::kNone);
    rig.WaitOutBreaker();
    rig.worker->SettleOnce();
    EXPECT_EQ(rig.StateOf(id), State::kDead);
}

TEST(Settle, TheReservedConnectionIsTheSecondWay) {
    SettleRig rig;
    TroubledStore reserved(rig.memory);
    rig.Open(&reserved);
    TaskId id = rig.Finish();
    rig.store.Next("settle", Trouble::kUnavailable);
    rig.worker->SettleOnce();
    EXPECT_EQ(rig.StateOf(id), State::kComplete);
    EXPECT_EQ(rig.metrics.settled_by_reserve, 1u);
    EXPECT_EQ(reserved.calls("settle"), 1);
}

TEST(Settle, OneThatAnotherTransactionHoldsUpIsPassedByAndTriedAgain) {
    for (bool spool : {false, true}) {
        SettleRig rig;
        TemporaryDirectory directory;
        if (spool) rig.options.state_dir = directory.path();
        rig.Open();
        TaskId held = rig.Finish(), free = rig.Finish();
        rig.store.SetBusy(held);
        rig.worker->SettleOnce();
        EXPECT_EQ(rig.StateOf(free), State::kComplete);
        TaskId next = rig.Finish();
        rig.worker->SettleOnce();
        EXPECT_EQ(rig.StateOf(next), State::kComplete);
        EXPECT_EQ(rig.StateOf(held), State::kInProgress);
        EXPECT_EQ(rig.store.calls("settle"), 2) << "not before its time";
        rig.store.SetBusy({});
        rig.clock.Advance(1s);
        rig.worker->SettleOnce();
        EXPECT_EQ(rig.StateOf(held), State::kComplete);
        EXPECT_EQ(rig.metrics.postponed, 1u);
        EXPECT_EQ(rig.metrics.lost, 0u);
    }
}

TEST(Settle, WithoutASpoolOutcomesWaitInMemory) {
    SettleRig rig;
    rig.Open();
    TaskId id = rig.Finish();
    rig.store.SetDown(true);
    rig.worker->SettleOnce();
    EXPECT_EQ(rig.worker->unsettled(), 1);
    rig.store.SetDown(false);
    rig.WaitOutBreaker();
    rig.worker->SettleOnce();
    EXPECT_EQ(rig.StateOf(id), State::kComplete);
}

TEST(Settle, OneOutcomeThatCannotBeStoredDoesNotHoldUpTheOthers) {
    SettleRig rig;
    rig.Open();
    TaskId first = rig.Submit("t");
    TaskId second = rig.Submit("t");
    rig.worker->ClaimOnce();
    rig.worker->RunOneAttempt();
    rig.worker->RunOneAttempt();
    // The batch, then the last of them alone: each refused once.
    rig.store.Next("settle", Trouble::kUnstorable, 2);
    rig.worker->SettleOnce();
    EXPECT_EQ(rig.worker->unsettled(), 0);
    EXPECT_EQ(rig.StateOf(first), State::kComplete);
    EXPECT_EQ(rig.StateOf(second), State::kDead);
    EXPECT_EQ(rig.Get(second).error->klass, "outcome");
}

TEST(Settle, ARefusalThatDoesNotBlameTheOutcomeIsTriedAgainAndHoldsUpNobody) {
    SettleRig rig;
    rig.Open();
    TaskId first = rig.Submit("t");
    TaskId second = rig.Submit("t");
    rig.worker->ClaimOnce();
    rig.worker->RunOneAttempt();
    rig.worker->RunOneAttempt();
    // A missing right, a bug of the server: the batch, then the last of them alone.
    rig.store.Next("settle", Trouble::kBug, 2);
    base::Instant next = rig.worker->SettleOnce();
    EXPECT_EQ(rig.StateOf(first), State::kComplete);
    EXPECT_EQ(rig.StateOf(second), State::kInProgress);
    EXPECT_EQ(next - rig.clock.Now(), model::limits::kRefusalDelay);
    EXPECT_EQ(rig.worker->unsettled(), 1);
    TaskId third = rig.Finish();
    rig.worker->SettleOnce();
    EXPECT_EQ(rig.StateOf(third), State::kComplete) << "it does not wait for the refused one";
    EXPECT_EQ(rig.StateOf(second), State::kInProgress);
    rig.clock.Advance(model::limits::kRefusalDelay);
    EXPECT_EQ(rig.worker->SettleOnce(), base::Instant::max());
    EXPECT_EQ(rig.StateOf(second), State::kComplete);
    EXPECT_EQ(rig.Get(second).attempt, 1);
}

TEST(Settle, ARefusalAfterTheCommitIsNotTakenForALostLease) {
    SettleRig rig;
    rig.Open();
    TaskId id = rig.Finish();
    rig.store.Next("settle", Trouble::kBugAfter);
    rig.worker->SettleOnce();
    EXPECT_EQ(rig.StateOf(id), State::kComplete);
    EXPECT_EQ(rig.metrics.completed, 1u);
    EXPECT_EQ(rig.metrics.lost, 0u);
}

TEST(Settle, ARefusedOutcomeIsTriedEverLessOften) {
    SettleRig rig;
    rig.Open();
    rig.Finish();
    rig.store.Next("settle", Trouble::kBug, 1'000);
    auto wait = [&] {
        auto next = rig.worker->SettleOnce() - rig.clock.Now();
        rig.clock.Advance(next);
        return next;
    };
    EXPECT_EQ(wait(), 100ms);
    EXPECT_EQ(wait(), 200ms);
    EXPECT_EQ(wait(), 400ms);
    for (int i = 0; i < 10; ++i) wait();
    EXPECT_EQ(wait(), 30s);
}

// An outcome that is given up takes its lease with it: the task comes back, and as one that ran.
void ExpectGivenUp(SettleRig& rig, TaskId id, SessionId session) {
    EXPECT_EQ(rig.worker->unsettled(), 0);
    EXPECT_TRUE(rig.Logged("an outcome is given up"));
    EXPECT_NE(rig.worker->session(), session) << "nothing more is claimed under it";
    rig.clock.Advance(5s);
    rig.worker->ClaimOnce();
    rig.worker->RenewOnce();  // leaves the retired one to expire
    rig.clock.Advance(1s);
    rig.worker->SweepOnce();
    EXPECT_EQ(rig.StateOf(id), State::kOpen);
    EXPECT_TRUE(rig.Get(id).suspect);
}

TEST(Settle, AnOutcomeRefusedForTooLongIsGivenUpWithItsSession) {
    SettleRig rig;
    rig.Open();
    SessionId session = rig.worker->session();
    TaskId id = rig.Finish();
    rig.store.Next("settle", Trouble::kBug, 2 * model::limits::kSettleRefusals);
    for (int i = 0; i < model::limits::kSettleRefusals; ++i) {
        ASSERT_EQ(rig.worker->unsettled(), 1) << i;
        rig.worker->SettleOnce();
        rig.worker->RenewOnce();
        // Thirty seconds are more than a lease; the heartbeats go on meanwhile.
        for (int k = 0; k < 6; ++k) {
            rig.clock.Advance(5s);
            rig.worker->RenewOnce();
        }
    }
    ExpectGivenUp(rig, id, session);
}

TEST(Settle, AnOutcomeThatNotEvenAsAFailureCanBeStoredIsGivenUpWithItsSession) {
    SettleRig rig;
    rig.Open();
    SessionId session = rig.worker->session();
    TaskId id = rig.Finish();
    rig.store.Next("settle", Trouble::kUnstorable, 3);  // the batch, alone, and in plain words
    rig.worker->SettleOnce();
    ExpectGivenUp(rig, id, session);
}

struct SpoolRig : SettleRig {
    TemporaryDirectory directory;
    SpoolRig() { options.state_dir = directory.path(); }
    std::size_t SpoolFiles() { return StateFiles(directory.path(), "spool-", ".log").size(); }
};

TEST(SpoolReplay, OutcomesSurviveTheProcessAndAreReplayedBeforeRecovery) {
    SpoolRig rig;
    rig.Open();
    TaskId id = rig.Finish();
    rig.store.SetDown(true);
    rig.worker->SettleOnce();
    EXPECT_EQ(rig.worker->unsettled(), 0) << "in the spool now";
    EXPECT_EQ(rig.metrics.spooled, 1u);
    rig.worker.reset();  // dies
    rig.store.SetDown(false);
    rig.clock.Advance(31s);  // its lease is over as well
    rig.Open();
    EXPECT_EQ(rig.StateOf(id), State::kComplete);
    EXPECT_EQ(rig.Get(id).output, "1");
    EXPECT_EQ(rig.metrics.replayed, 1u);
    EXPECT_EQ(rig.SpoolFiles(), 0u);
}

TEST(SpoolReplay, OurOwnSpoolIsReplayedWhenTheStoreAnswersAgain) {
    SpoolRig rig;
    rig.Open();
    TaskId id = rig.Finish();
    rig.store.SetDown(true);
    rig.worker->SettleOnce();
    rig.store.SetDown(false);
    rig.WaitOutBreaker();
    rig.worker->SettleOnce();
    EXPECT_EQ(rig.StateOf(id), State::kComplete);
    EXPECT_EQ(rig.worker->SettleOnce(), base::Instant::max());
}

TEST(SpoolReplay, ARefusedOutcomeIsAsSafeAsOneThatFoundNoStore) {
    SpoolRig rig;
    rig.Open();
    TaskId refused = rig.Finish();
    rig.store.Next("settle", Trouble::kBug, 2);
    rig.worker->SettleOnce();
    EXPECT_EQ(rig.metrics.spooled, 1u);
    EXPECT_EQ(rig.worker->unsettled(), 0) << "in the spool now";
    TaskId other = rig.Finish();
    rig.worker->SettleOnce();
    EXPECT_EQ(rig.StateOf(other), State::kComplete);
    EXPECT_EQ(rig.StateOf(refused), State::kInProgress) << "not before its time";
    rig.clock.Advance(model::limits::kRefusalDelay);
    rig.store.Next("settle", Trouble::kBug, 2);
    auto next = rig.worker->SettleOnce() - rig.clock.Now();
    EXPECT_EQ(next, 2 * model::limits::kRefusalDelay) << "its count went through the spool";
    rig.worker.reset();  // dies
    rig.Open();
    EXPECT_EQ(rig.StateOf(refused), State::kComplete);
    EXPECT_EQ(rig.SpoolFiles(), 0u);
}

TEST(SpoolReplay, ARefusedWaitFailsItsAttemptThen) {
    SpoolRig rig;
    rig.Handle("waits", [](Context&, std::string_view) -> Outcome<std::string> {
        return Blocked{.on = {TaskId(999'999)}};
    });
    rig.Open();
    TaskId id = rig.Submit("waits");
    rig.worker->ClaimOnce();
    rig.worker->RunOneAttempt();
    rig.store.SetDown(true);
    rig.worker->SettleOnce();
    ASSERT_EQ(rig.metrics.spooled, 1u);
    rig.store.SetDown(false);
    rig.WaitOutBreaker();
    rig.worker->SettleOnce();
    rig.worker->SettleOnce();
    EXPECT_NE(rig.StateOf(id), State::kInProgress) << "nobody works on it";
    ASSERT_TRUE(rig.Get(id).error);
    EXPECT_THAT(rig.Get(id).error->message, ::testing::HasSubstr("a wait was refused"));
}

TEST(SpoolReplay, IsFencedByTheToken) {
    auto run = [] {
        SpoolRig rig;
        rig.Open();
        TaskId id = rig.Finish();
        rig.store.SetDown(true);
        rig.worker->SettleOnce();
        rig.store.SetDown(false);
        rig.worker.reset();
        // Meanwhile somebody else took it over and is at work.
        rig.clock.Advance(31s);
        rig.memory.Reclaim({});
        rig.clock.Advance(1s);
        store::NewSession other;
        other.id = SessionId(1, 1);
        other.hostname = "there";
        other.lease = 30s;
        rig.memory.OpenSession(other);
        auto claimed = rig.memory.Claim(
            {.session = other.id, .limit = 1, .queues = {}, .types = {"t"}, .suspect = true}
        );
        EXPECT_EQ(claimed.leases.size(), 1u);
        rig.Make();
        rig.worker->Open();
        return std::pair(rig.StateOf(id), rig.metrics.lost.load());
    };
    EXPECT_EQ(run(), std::pair(State::kInProgress, std::uint64_t{1}));
    base::PlantBug(base::Bug::kSpoolUnfenced);
    EXPECT_EQ(run().first, State::kComplete) << "the bug lets the stale outcome in";
    base::PlantBug(base::Bug::kNone);
}

TEST(SpoolReplay, ARecordTheStoreAlreadyHasIsNotCountedAsLost) {
    SpoolRig rig;
    rig.Open();
    TaskId id = rig.Finish();
    rig.store.Next("settle", Trouble::kUnknownAfter);
    rig.worker->SettleOnce();
    EXPECT_EQ(rig.metrics.spooled, 1u);
    rig.WaitOutBreaker();
    rig.worker->SettleOnce();
    EXPECT_EQ(rig.StateOf(id), State::kComplete);
    EXPECT_EQ(rig.metrics.lost, 0u);
    EXPECT_EQ(rig.metrics.completed, 1u);
}

TEST(SpoolFile, KeepsEveryFieldAndIgnoresATornTail) {
    TemporaryDirectory directory;
    Report report;
    report.queue = "q";
    report.settlement.task = TaskId(17);
    report.settlement.token = LeaseToken(3, 4);
    report.settlement.session = SessionId(5, 6);
    report.settlement.kind = store::Settlement::Kind::kRetry;
    report.settlement.delay = 1234ms;
    report.settlement.error = model::TaskError{"m\xff", "k", "s", true};
    report.settlement.end = model::AttemptEnd::kTimedOut;
    report.settlement.exit_code = 3;
    report.settlement.stderr_tail = "tail";
    {
        Spool spool(directory.path(), {});
        ASSERT_TRUE(spool.Append(std::vector{report, report}));
        EXPECT_TRUE(spool.Orphans().empty()) << "its process lives";
    }
    auto files = StateFiles(directory.path(), "spool-", ".log");
    ASSERT_EQ(files.size(), 1u);
    std::ofstream(files.front(), std::ios::app) << std::string_view("\x10\0\0\0torn", 8);
    Spool other(directory.path(), {});
    auto orphans = other.Orphans();
    ASSERT_EQ(orphans.size(), 1u);
    ASSERT_EQ(orphans.front().reports.size(), 2u);
    const store::Settlement& read = orphans.front().reports.back().settlement;
    EXPECT_EQ(read.task, TaskId(17));
    EXPECT_EQ(read.token, LeaseToken(3, 4));
    EXPECT_EQ(read.session, SessionId(5, 6));
    EXPECT_EQ(read.kind, store::Settlement::Kind::kRetry);
    EXPECT_EQ(read.delay, 1234ms);
    EXPECT_EQ(read.error->message, "m\xef\xbf\xbd");
    EXPECT_EQ(read.end, model::AttemptEnd::kTimedOut);
    EXPECT_EQ(read.exit_code, 3);
    EXPECT_FALSE(read.exit_signal);
    EXPECT_TRUE(orphans.front().reports.back().uncertain);
}

// Three records, the second of them damaged.
struct DamagedSpool {
    TemporaryDirectory directory;
    std::vector<std::string> log;
    base::Logger logger{
        [this](const LogRecord& record) {
            std::string line(record.message);
            for (const auto& [name, value] : record.fields) line += " " + value;
            log.push_back(line);
        },
        "spool"};
    std::unique_ptr<Spool> spool = std::make_unique<Spool>(directory.path(), logger);

    DamagedSpool() {
        std::vector<Report> reports(3);
        for (int i = 0; i < 3; ++i) {
            reports[i].settlement.task = TaskId(i + 1);
            reports[i].settlement.token = LeaseToken(3, 4);
            reports[i].settlement.session = SessionId(5, 6);
        }
        EXPECT_TRUE(spool->Append(reports));
        std::fstream file(Path(), std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(Path()) / 2));
        file.put('\x7f');
    }
    std::string Path() { return StateFiles(directory.path(), "spool-", ".log").front().string(); }
    static std::vector<TaskId> Tasks(const std::vector<Report>& reports) {
        std::vector<TaskId> tasks;
        for (const Report& report : reports) tasks.push_back(report.settlement.task);
        return tasks;
    }
};

TEST(SpoolFile, ADamagedRecordCostsItselfAloneAndACopyIsKept) {
    DamagedSpool rig;
    std::string path = rig.Path();
    auto size = std::filesystem::file_size(path);
    EXPECT_THAT(rig.Tasks(rig.spool->Read()), testing::ElementsAre(TaskId(1), TaskId(3)));
    EXPECT_THAT(rig.Tasks(rig.spool->Read()), testing::SizeIs(2)) << "it was not emptied";
    rig.spool->Clear();
    EXPECT_EQ(std::filesystem::file_size(path + ".damaged"), size);
    EXPECT_THAT(rig.log, testing::ElementsAre(testing::HasSubstr(path + ".damaged"))) << "once";
}

TEST(SpoolFile, TheDamagedFileOfADeadProcessIsKeptAside) {
    DamagedSpool rig;
    std::string path = rig.Path();
    rig.spool.reset();
    Spool other(rig.directory.path(), rig.logger);
    auto orphans = other.Orphans();
    ASSERT_EQ(orphans.size(), 1u);
    EXPECT_THAT(rig.Tasks(orphans.front().reports), testing::ElementsAre(TaskId(1), TaskId(3)));
    orphans.front().Remove();
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_TRUE(std::filesystem::exists(path + ".damaged"));
    EXPECT_THAT(rig.log, testing::ElementsAre(testing::HasSubstr(path + ".damaged")));
    orphans.clear();
    EXPECT_TRUE(other.Orphans().empty()) << "nobody takes it for a spool";
}

}  // namespace
}  // namespace stint::engine
