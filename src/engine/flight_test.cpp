#include "engine/flight.h"

#include <gmock/gmock.h>

#include <fstream>

#include "support/engine_rig.h"

namespace stint::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Flight, TellsWhatHadStartedInADeadProcess) {
    TemporaryDirectory directory;
    SessionId session(1, 2);
    {
        FlightRecord record(directory.path(), session, 4);
        int first = record.Start(TaskId(11));
        record.Start(TaskId(12));
        record.End(first);
        EXPECT_TRUE(ReadDeadFlights(directory.path()).files.empty()) << "its process lives";
    }
    auto dead = ReadDeadFlights(directory.path());
    EXPECT_THAT(dead.flights[session], ElementsAre(TaskId(12)));
}

TEST(Flight, ACleanStopLeavesNothing) {
    TemporaryDirectory directory;
    {
        FlightRecord record(directory.path(), SessionId(1, 2), 4);
        record.Remove();
    }
    EXPECT_TRUE(ReadDeadFlights(directory.path()).files.empty());
}

TEST(Flight, ARecordThatOverflowedOrIsDamagedSaysNothing) {
    TemporaryDirectory directory;
    {
        FlightRecord full(directory.path(), SessionId(1, 1), 1);
        full.Start(TaskId(1));
        EXPECT_EQ(full.Start(TaskId(2)), -1);
    }
    std::ofstream(directory.path() + "/flight-" + SessionId(2, 2).ToString() + ".map") << "junk";
    auto dead = ReadDeadFlights(directory.path());
    EXPECT_THAT(dead.flights, IsEmpty());
    EXPECT_EQ(dead.files.size(), 2u);
}

struct FlightRig : Rig {
    TemporaryDirectory directory;
    FlightRig() { options.state_dir = directory.path(); }
    std::size_t Files() { return StateFiles(directory.path(), "flight-", ".map").size(); }
};

TEST(Flight, OnlyWhatHadStartedIsSuspect) {
    FlightRig rig;
    rig.options.slots = 2;
    struct Died {};
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Handle("killer", [&](Context&, std::string_view) -> Outcome<std::string> {
        // The process dies in here: its record stays as it is, its locks go.
        std::filesystem::copy_file(
            StateFiles(rig.directory.path(), "flight-", ".map").front(),
            rig.directory.path() + "/saved"
        );
        return Done();
    });
    rig.Open();
    TaskId killer = rig.Submit("killer");
    TaskId bystander = rig.Submit("t");
    rig.worker->ClaimOnce();
    ASSERT_EQ(rig.worker->running(), 2);
    auto name = StateFiles(rig.directory.path(), "flight-", ".map").front();
    rig.worker->RunOneAttempt();  // never settled
    rig.worker.reset();
    std::filesystem::rename(rig.directory.path() + "/saved", name);

    rig.clock.Advance(31s);
    rig.Open();
    EXPECT_TRUE(rig.Get(killer).suspect);
    EXPECT_FALSE(rig.Get(bystander).suspect);
    EXPECT_EQ(rig.Get(bystander).attempt, rig.StateOf(bystander) == model::State::kOpen ? 0 : 1);
    EXPECT_EQ(rig.Files(), 1u) << "the dead one's record is gone, ours is there";
    rig.worker->Drain();
    EXPECT_EQ(rig.Files(), 0u);
}

TEST(Flight, WhatStartsAfterItsSessionWasRetiredIsSuspectToo) {
    FlightRig rig;
    rig.options.slots = 2;
    TemporaryDirectory saved;
    // The process dies in here: its records stay as they are, its locks go.
    rig.Handle("killer", [&](Context&, std::string_view) -> Outcome<std::string> {
        for (const auto& file : StateFiles(rig.directory.path(), "flight-", ".map")) {
            std::filesystem::copy_file(file, saved.path() / file.filename());
        }
        return Done();
    });
    rig.Open();
    TaskId killer = rig.Submit("killer");
    rig.worker->ClaimOnce();  // held, not run yet
    SessionId before = rig.worker->session();
    rig.Submit("killer");
    rig.store.Next("claim", Trouble::kUnknownAfter);
    rig.worker->ClaimOnce();
    rig.clock.Advance(1s);
    rig.worker->ClaimOnce();
    ASSERT_NE(rig.worker->session(), before) << "a new session is there before it starts";
    rig.worker->RunOneAttempt();  // never settled
    rig.worker.reset();
    for (const auto& file : std::filesystem::directory_iterator(saved.path())) {
        std::filesystem::copy_file(
            file,
            std::filesystem::path(rig.directory.path()) / file.path().filename(),
            std::filesystem::copy_options::overwrite_existing
        );
    }

    rig.clock.Advance(31s);
    rig.Open();
    EXPECT_TRUE(rig.Get(killer).suspect);
    EXPECT_EQ(rig.Get(killer).attempt, 1);
}

TEST(Flight, TheRecordOfASessionThatIsLeftToExpireStays) {
    FlightRig rig;
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Open();
    TaskId id = rig.Submit("t");
    rig.store.Next("claim", Trouble::kUnknownAfter);
    rig.worker->ClaimOnce();  // it holds a lease that it never heard of
    rig.worker->Drain();
    rig.worker.reset();
    EXPECT_EQ(rig.Files(), 1u);

    rig.clock.Advance(31s);
    rig.Open();
    EXPECT_FALSE(rig.Get(id).suspect) << "it had not started, and the record says so";
}

}  // namespace
}  // namespace stint::engine
