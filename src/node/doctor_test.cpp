#include "node/doctor.h"

#include <gmock/gmock.h>
#include <stint/engine.h>

#include <fstream>

#include "base/random.h"
#include "node/engine_impl.h"
#include "node/resource_client.h"

namespace stint::node {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Verdict = Diagnosis::Verdict;

class Doctor : public ::testing::Test {
protected:
    Doctor() : engine_({.store = "memory:"}), client_(Client::Of(engine_)) {}

    void Submit(const std::string& type, const std::string& queue = "q") {
        model::NewTask task;
        task.type = type;
        task.queue = queue;
        ASSERT_TRUE(client_.Submit({&task, 1}).at(0));
    }
    void Worker(const std::string& type, const std::string& version, Duration lease = 24h) {
        store::NewSession session{
            .id = base::SystemRandom().MakeId<SessionId>(), .hostname = "host"};
        session.pid = 17;
        session.lease = lease;
        session.types = {type};
        session.slots = 4;
        session.version = version;
        engine_.impl().store->OpenSession(session);
    }
    static Diagnosis Of(const std::vector<Diagnosis>& all, std::string_view what) {
        for (const Diagnosis& one : all) {
            if (one.what == what) return one;
        }
        ADD_FAILURE() << "nothing was said of: " << what;
        return {};
    }
    Diagnosis OfWork(std::string_view what) { return Of(ExamineWork(client_), what); }

    Engine engine_;
    Client client_;
};

TEST_F(Doctor, AHealthyStoreIsWell) {
    Submit("t");
    Worker("t", "1.0");
    for (const Diagnosis& one : ExamineStore(client_, client_.Now())) {
        EXPECT_EQ(one.verdict, Verdict::kOk) << one.what;
        EXPECT_THAT(one.cure, IsEmpty()) << one.what;
    }
    for (const Diagnosis& one : ExamineWork(client_)) {
        EXPECT_EQ(one.verdict, Verdict::kOk) << one.what;
    }
    EXPECT_EQ(ExamineStore(client_, client_.Now()).size(), client_.Check().size() + 2)
        << "each of the store's own checks is there";
}

TEST_F(Doctor, WhatWaitsForNobodyIsSaidWithTheCure) {
    Submit("t");
    Diagnosis none = OfWork("a worker is running");
    EXPECT_EQ(none.verdict, Verdict::kLook);
    EXPECT_THAT(none.detail, HasSubstr("1 tasks waiting"));
    EXPECT_THAT(none.cure, HasSubstr("stint worker start"));
    Worker("u", "1.0");
    EXPECT_EQ(OfWork("a worker is running").verdict, Verdict::kOk);
    Diagnosis type = OfWork("what waits has a worker for its type");
    EXPECT_EQ(type.verdict, Verdict::kLook);
    EXPECT_THAT(type.detail, HasSubstr("t (1)"));
    Worker("t", "2.0");
    EXPECT_EQ(OfWork("what waits has a worker for its type").verdict, Verdict::kOk);
    EXPECT_EQ(OfWork("all have one version").detail, "1.0, 2.0");
    EXPECT_EQ(OfWork("all have one version").verdict, Verdict::kLook);
}

TEST_F(Doctor, PausedQueuesAndClosedResourcesAreNamed) {
    Submit("t");
    client_.ChangeQueue({.name = "q", .paused = true}, "ann");
    client_.ChangeQueue({.name = "empty", .paused = true}, "ann");
    EXPECT_EQ(OfWork("no queue is paused with tasks in it").detail, "q (1 waiting, by ann)");
    ResourceChange change{.name = "api"};
    change.capacity = 1;
    ASSERT_TRUE(client_.Resources().Change(change, "ann"));
    EXPECT_EQ(OfWork("no resource is closed because it failed").verdict, Verdict::kOk);
    ASSERT_TRUE(client_.Resources().Close("api", 1h, "it moves", "ann"));
    Diagnosis closed = OfWork("no resource is closed because it failed");
    EXPECT_EQ(closed.verdict, Verdict::kLook);
    EXPECT_THAT(closed.detail, HasSubstr("api"));
    EXPECT_THAT(closed.cure, HasSubstr("stint resource open"));
}

TEST_F(Doctor, ClocksThatAreApartAreToldInWords) {
    auto clock = [&](Duration apart) {
        return Of(
            ExamineStore(client_, client_.Now() - apart), "its clock agrees with this machine's"
        );
    };
    EXPECT_EQ(clock(1s).verdict, Verdict::kOk);
    EXPECT_EQ(clock(10min).verdict, Verdict::kLook);
    EXPECT_THAT(clock(10min + 30s).detail, HasSubstr("ahead"));
    EXPECT_THAT(clock(-10min).detail, HasSubstr("behind"));
}

TEST_F(Doctor, ProgramsAndProbesOfTheConfigurationAreTried) {
    std::string place = ::testing::TempDir() + "stint-doctor-XXXXXX";
    ASSERT_NE(mkdtemp(place.data()), nullptr);
    std::ofstream(place + "/c.toml") << R"(
[task.there]
command = ["sh", "-c", "true"]
[task.gone]
command = ["no-such-program-at-all"]
[probe.good]
kind = "command"
target = ["true"]
[probe.bad]
kind = "command"
target = ["false"]
)";
    ConfigSources sources;
    sources.files = {{place + "/c.toml", true}};
    auto found = ExamineConfig(Config::Load(sources).value());
    std::filesystem::remove_all(place);
    EXPECT_EQ(Of(found, "it can be read").verdict, Verdict::kOk);
    EXPECT_EQ(Of(found, "the program of task.there is there").verdict, Verdict::kOk);
    Diagnosis gone = Of(found, "the program of task.gone is there");
    EXPECT_EQ(gone.verdict, Verdict::kLook);
    EXPECT_THAT(gone.cure, HasSubstr("c.toml:4"));
    EXPECT_EQ(Of(found, "probe.good succeeds from here").verdict, Verdict::kOk);
    EXPECT_EQ(Of(found, "probe.bad succeeds from here").verdict, Verdict::kLook);
}

}  // namespace
}  // namespace stint::node
