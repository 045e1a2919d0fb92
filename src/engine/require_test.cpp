// Resources that a running attempt asks for, and those that it finds broken: what is reported.
#include "engine/require.h"

#include <gmock/gmock.h>

#include "engine/isolate/frame.h"
#include "engine/outcome.h"
#include "engine/spool.h"
#include "support/engine_rig.h"

namespace stint::engine {
namespace {

using Kind = store::Settlement::Kind;
using model::AttemptEnd;
using model::Needs;
using testing::HasSubstr;

store::Lease LeaseWith(Needs needs) {
    store::Lease lease;
    lease.task = TaskId(7);
    lease.token = base::SystemRandom().MakeId<LeaseToken>();
    lease.type = "t";
    lease.attempt = 1;
    lease.placement.needs = std::move(needs);
    return lease;
}

store::Settlement Report(const store::Lease& lease, AttemptResult result) {
    return Conclude(lease, SessionId{}, result, StopReason::kNone, 0.5);
}

// What a handler that requires this comes to.
AttemptResult Requiring(const store::Lease& lease, std::string_view resource, int units) {
    AttemptResult result;
    Requirements requirements;
    try {
        requirements.Require(lease.placement.needs, resource, units);
        result.end = Done();
    } catch (...) {
        result.end = EndOf(std::current_exception());
    }
    result.required = requirements.Take();
    return result;
}

TEST(Require, ReturnsWhenTheAttemptHoldsEnough) {
    store::Lease lease = LeaseWith({{"gpu", 2}});
    EXPECT_EQ(Report(lease, Requiring(lease, "GPU", 2)).kind, Kind::kComplete);
    EXPECT_EQ(Report(lease, Requiring(lease, "gpu", 1)).kind, Kind::kComplete);
}

TEST(Require, GivesTheSlotBackAndNamesAllThatIsNeeded) {
    store::Lease lease = LeaseWith({{"disk", 1}, {"gpu", 1}});
    store::Settlement settlement = Report(lease, Requiring(lease, "GPU", 2));
    EXPECT_EQ(settlement.kind, Kind::kRelease);
    EXPECT_EQ(settlement.end, AttemptEnd::kReleased);
    EXPECT_EQ(settlement.needs, (Needs{{"disk", 1}, {"gpu", 2}}));
    EXPECT_FALSE(settlement.error) << "nothing has failed";
    EXPECT_EQ(settlement.reason, "needs disk, gpu=2");
}

TEST(Require, PassesAHandlerThatCatchesExceptionsAndAnyFailureItMakesOfIt) {
    bool caught = false;
    Requirements requirements;
    try {
        try {
            requirements.Require({}, "gpu", 1);
        } catch (const std::exception&) {
            caught = true;
        }
    } catch (const GiveSlotBack&) {
    }
    EXPECT_FALSE(caught);
    AttemptResult result;
    result.end = Outcome<std::string>(Failed{"something went wrong"});
    result.required = {{"gpu", 1}};
    EXPECT_EQ(Report(LeaseWith({}), result).kind, Kind::kRelease);
    result.end = Done();
    EXPECT_EQ(Report(LeaseWith({}), result).kind, Kind::kComplete) << "what is done is done";
}

TEST(Require, WhatCannotBeIsThrownWhereItIsAsked) {
    Requirements requirements;
    EXPECT_THROW(requirements.Require({}, "", 1), std::invalid_argument);
    EXPECT_THROW(requirements.Require({}, "gpu", 0), std::invalid_argument);
    EXPECT_THROW(requirements.Require({}, "two words", 1), std::invalid_argument);
    EXPECT_TRUE(requirements.Take().empty());
}

TEST(Unavailable, RefundsTheAttemptAndClosesTheResource) {
    for (bool thrown : {false, true}) {
        AttemptResult result;
        ResourceUnavailable unavailable("Ollama", "429 Too Many Requests", 30s);
        if (thrown) {
            result.end = EndOf(std::make_exception_ptr(unavailable));
        } else {
            result.end = Outcome<std::string>(unavailable);
        }
        store::Settlement settlement = Report(LeaseWith({{"ollama", 1}}), result);
        EXPECT_EQ(settlement.kind, Kind::kRelease);
        EXPECT_EQ(settlement.unavailable, "ollama");
        EXPECT_EQ(settlement.closed_for, 30s);
        ASSERT_TRUE(settlement.error);
        EXPECT_EQ(settlement.error->message, "429 Too Many Requests");
        EXPECT_EQ(settlement.error->klass, "resource_unavailable");
    }
}

TEST(Unavailable, OfWhatItHadNotAskedForTheTaskWaitsFromNowOn) {
    AttemptResult result;
    result.end = Outcome<std::string>(ResourceUnavailable("Ollama", "down"));
    store::Settlement settlement = Report(LeaseWith({{"gpu", 2}}), result);
    EXPECT_EQ(settlement.kind, Kind::kRelease);
    ASSERT_TRUE(settlement.needs);
    EXPECT_EQ(*settlement.needs, (model::Needs{{"gpu", 2}, {"ollama", 1}}));
    EXPECT_GE(settlement.delay, 1s) << "else it would run in circles until the breaker opens";
    EXPECT_FALSE(Report(LeaseWith({{"ollama", 1}}), result).needs);
    EXPECT_GE(Report(LeaseWith({{"ollama", 1}}), result).delay, 1s);
}

TEST(Unavailable, WhoCanNeedNoMoreWaitsAsLongAsItWasTold) {
    model::Needs many;
    for (int i = 0; i < 16; ++i) many.push_back({"r" + std::to_string(i), 1});
    AttemptResult result;
    result.end = Outcome<std::string>(ResourceUnavailable("ollama", "429", 10min));
    store::Settlement settlement = Report(LeaseWith(many), result);
    EXPECT_FALSE(settlement.needs);
    EXPECT_EQ(settlement.delay, 10min);
}

TEST(Unavailable, OfANameThatCannotBeIsAFailureThatSaysSo) {
    AttemptResult result;
    result.end = Outcome<std::string>(ResourceUnavailable("", "down"));
    store::Settlement settlement = Report(LeaseWith({}), result);
    EXPECT_EQ(settlement.kind, Kind::kRetry);
    EXPECT_THAT(settlement.error->message, HasSubstr("ResourceUnavailable: resource"));
}

TEST(Unavailable, AStopThatWasAskedForComesFirst) {
    AttemptResult result;
    result.end = Outcome<std::string>(ResourceUnavailable("ollama", "down"));
    auto settlement = Conclude(LeaseWith({}), SessionId{}, result, StopReason::kCancelled, 0.5);
    EXPECT_EQ(settlement.kind, Kind::kCancelled);
    EXPECT_EQ(settlement.unavailable, "");
}

TEST(Unavailable, SurvivesTheSpoolAndThePipeAsRequirementsDo) {
    TemporaryDirectory directory;
    std::vector<struct Report> reports(2);
    for (auto& report : reports) {
        report.settlement.task = TaskId(7);
        report.settlement.token = base::SystemRandom().MakeId<LeaseToken>();
        report.settlement.session = base::SystemRandom().MakeId<SessionId>();
        report.settlement.kind = Kind::kRelease;
    }
    reports[0].settlement.unavailable = "ollama";
    reports[0].settlement.closed_for = 30s;
    reports[1].settlement.needs = Needs{{"gpu", 2}};
    Spool spool(directory.path(), base::Logger({}, "test"));
    ASSERT_TRUE(spool.Append(reports));
    auto read = spool.Read();
    ASSERT_EQ(read.size(), 2u);
    EXPECT_EQ(read[0].settlement.unavailable, "ollama");
    EXPECT_EQ(read[0].settlement.closed_for, 30s);
    EXPECT_EQ(read[1].settlement.needs, (Needs{{"gpu", 2}}));
    spool.Clear();

    AttemptResult result;
    result.end = Outcome<std::string>(ResourceUnavailable("ollama", "down", 5s));
    result.required = {{"gpu", 2}};
    auto back = isolate::DecodeResult(isolate::EncodeResult(result)).value();
    const auto& outcome = std::get<Outcome<std::string>>(back.end);
    EXPECT_EQ(std::get<ResourceUnavailable>(outcome).resource(), "ollama");
    EXPECT_EQ(std::get<ResourceUnavailable>(outcome).retry_after(), 5s);
    EXPECT_EQ(back.required, (Needs{{"gpu", 2}}));
    isolate::Start start{.lease = LeaseWith({{"gpu", 3}})};
    EXPECT_EQ(
        isolate::DecodeStart(isolate::EncodeStart(start))->lease.placement.needs,
        (Needs{{"gpu", 3}})
    );
}

}  // namespace
}  // namespace stint::engine
