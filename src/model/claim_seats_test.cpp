// Who of a plan holds units, and who is behind them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/random.h"
#include "model/claim_plan.h"
#include "model/limits.h"

namespace stint::model {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): units
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

const Time kClaimedAt{std::chrono::seconds{1'000'000}};

WaitingLine NeedyLine(int priority, std::int64_t first, int count, Needs needs) {
    WaitingLine line;
    line.queue = "q";
    line.type = "t";
    line.priority = priority;
    line.needs = std::move(needs);
    for (int i = 0; i < count; ++i) line.waiting.push_back({first + i, kClaimedAt});
    return line;
}

Offer OfferWith(int at_once, std::map<std::string, int> units) {
    Offer offer{.now = kClaimedAt};
    offer.at_once = at_once;
    for (const auto& [name, free] : units) {
        offer.supplies[name] = {.units = free, .plain = true, .capacity = 100};
    }
    return offer;
}

std::vector<int> GroupsIn(const ClaimPlan& plan) {
    std::vector<int> groups;
    for (const ClaimPlan::Pick& pick : plan.picks) groups.push_back(pick.group);
    return groups;
}

TEST(ClaimSeats, AsManyHaveUnitsAsTheClaimerRunsAtOnce) {
    std::vector<WaitingLine> lines = {NeedyLine(1, 1, 20, {{"gpu", 1}})};
    ClaimPlan plan = PlanClaim(lines, OfferWith(4, {{"gpu", 8}}), 12);
    EXPECT_THAT(plan.picks, SizeIs(12));
    EXPECT_THAT(plan.seats, ElementsAre(4));
    EXPECT_THAT(GroupsIn(plan), testing::Each(0));
}

TEST(ClaimSeats, WhereThereAreUnitsForAllEachHasItsOwn) {
    std::vector<WaitingLine> lines = {NeedyLine(1, 1, 3, {{"gpu", 1}})};
    ClaimPlan plan = PlanClaim(lines, OfferWith(4, {{"gpu", 8}}), 12);
    EXPECT_THAT(plan.picks, SizeIs(3));
    EXPECT_THAT(plan.seats, IsEmpty());
    EXPECT_THAT(GroupsIn(plan), testing::Each(-1));
}

TEST(ClaimSeats, AUnitCarriesNoMoreThanASlotOfTheClaimerWould) {
    std::vector<WaitingLine> lines = {NeedyLine(1, 1, 50, {{"gpu", 1}})};
    EXPECT_THAT(PlanClaim(lines, OfferWith(4, {{"gpu", 1}}), 40).picks, SizeIs(10));
    EXPECT_THAT(PlanClaim(lines, OfferWith(4, {{"gpu", 0}}), 40).picks, IsEmpty());
}

TEST(ClaimSeats, LinesOfTheSameNeedsShareTheSeatsOthersHaveTheirOwn) {
    std::vector<WaitingLine> lines = {
        NeedyLine(1, 1, 5, {{"gpu", 1}}),
        NeedyLine(1, 10, 5, {{"gpu", 1}}),
        NeedyLine(1, 20, 5, {{"gpu", 2}})};
    lines[1].tenant = TenantId(2);
    ClaimPlan plan = PlanClaim(lines, OfferWith(2, {{"gpu", 8}}), 15);
    EXPECT_THAT(plan.seats, ElementsAre(2, 1)) << "each has at least one";
    for (const ClaimPlan::Pick& pick : plan.picks) EXPECT_EQ(pick.group, pick.line == 2 ? 1 : 0);
    EXPECT_THAT(plan.picks, SizeIs(15));
}

TEST(ClaimSeats, NobodyIsPassedByOneThatGoesBehind) {
    std::vector<WaitingLine> lines = {
        NeedyLine(9, 1, 1, {{"gpu", 4}}),
        NeedyLine(1, 2, 20, {{"gpu", 1}}),
        NeedyLine(1, 40, 5, {{"disk", 1}})};
    Offer offer = OfferWith(2, {{"gpu", 2}, {"disk", 1}});
    ClaimPlan plan = PlanClaim(lines, offer, 30);
    EXPECT_EQ(plan.Taken(0), 0U);
    EXPECT_EQ(plan.Taken(1), 2U) << "what is free; then they wait for the same as the first";
    EXPECT_EQ(plan.Taken(2), 5U) << "nobody waits for that";
}

TEST(ClaimSeats, WhoCouldNotHaveTheUnitsKeepsNobody) {
    std::vector<WaitingLine> lines = {
        NeedyLine(9, 1, 1, {{"disk", 1}, {"gpu", 1}}),
        NeedyLine(8, 2, 1, {{"gpu", 101}}),
        NeedyLine(1, 3, 20, {{"gpu", 1}})};
    ClaimPlan plan = PlanClaim(lines, OfferWith(2, {{"gpu", 1}, {"disk", 0}}), 30);
    EXPECT_EQ(plan.Taken(2), 15U);
}

TEST(ClaimSeats, WhatIsKeptForOneThatHasWaitedLongCarriesNobodyElse) {
    std::vector<WaitingLine> lines = {
        NeedyLine(9, 1, 1, {{"gpu", 4}}), NeedyLine(1, 2, 20, {{"gpu", 1}})};
    lines[0].waiting[0].since = kClaimedAt - 2 * limits::kKeepAllAfter;
    EXPECT_THAT(PlanClaim(lines, OfferWith(2, {{"gpu", 3}}), 30).picks, IsEmpty());
}

TEST(ClaimSeats, WhatCountsStartsOrIsClosedIsNotShared) {
    std::vector<WaitingLine> lines = {NeedyLine(1, 1, 20, {{"gpu", 1}})};
    Offer rated = OfferWith(2, {{"gpu", 3}});
    rated.supplies["gpu"].plain = false;
    rated.supplies["gpu"].starts = 10;
    ClaimPlan plan = PlanClaim(lines, rated, 30);
    EXPECT_THAT(plan.picks, SizeIs(3));
    EXPECT_THAT(plan.seats, IsEmpty());
}

TEST(ClaimSeats, ALargeGroupIsSeveralEachWithItsShareOfTheSeats) {
    std::vector<WaitingLine> lines = {NeedyLine(1, 1, 1000, {{"gpu", 1}})};
    ClaimPlan plan = PlanClaim(lines, OfferWith(6, {{"gpu", 64}}), 1000);
    ASSERT_THAT(plan.picks, SizeIs(1000));
    EXPECT_THAT(plan.seats, ElementsAre(2, 2, 1, 1));
    std::map<int, int> members;
    for (int group : GroupsIn(plan)) ++members[group];
    for (const auto& [group, count] : members) EXPECT_LE(count, limits::kGroupMembers);
}

TEST(ClaimSeats, TheLastOfAGroupHold) {
    const std::vector<int> groups = {0, -1, 1, 0, 1, 0}, seats = {2, 1};
    EXPECT_THAT(Holders(groups, seats), ElementsAre(false, true, false, true, true, true));
}

// Whatever there is: the units of the seats are never more than were free, everybody taken has a
// seat or is behind one, and those that take part are the first of their lines.
TEST(ClaimSeats, NeverMoreThanThereIs) {
    base::SeededRandom random(3);
    for (int round = 0; round < 500; ++round) {
        std::vector<WaitingLine> lines;
        for (int i = 0; i < 4; ++i) {
            Needs needs;
            if (random.Below(3) > 0)
                needs.push_back({"disk", 1 + static_cast<int>(random.Below(2))});
            if (random.Below(3) > 0)
                needs.push_back({"gpu", 1 + static_cast<int>(random.Below(3))});
            lines.push_back(NeedyLine(static_cast<int>(random.Below(2)), 100 * i, 30, needs));
        }
        std::map<std::string, int> free = {
            {"gpu", static_cast<int>(random.Below(12))},
            {"disk", static_cast<int>(random.Below(6))}};
        const int limit = 1 + static_cast<int>(random.Below(80));
        ClaimPlan plan =
            PlanClaim(lines, OfferWith(1 + static_cast<int>(random.Below(8)), free), limit);
        const std::vector<bool> holds = Holders(GroupsIn(plan), plan.seats);
        std::map<std::string, int> held;
        std::map<int, int> members;
        for (std::size_t i = 0; i < plan.picks.size(); ++i) {
            if (plan.picks[i].group >= 0) ++members[plan.picks[i].group];
            if (!holds[i]) continue;
            for (const Need& need : lines[plan.picks[i].line].needs)
                held[need.resource] += need.units;
        }
        for (const auto& [name, units] : held) EXPECT_LE(units, free[name]) << "round " << round;
        for (const auto& [group, count] : members) {
            const int seats = plan.seats[static_cast<std::size_t>(group)];
            EXPECT_GE(seats, 1);
            EXPECT_LT(seats, count);
        }
        EXPECT_LE(static_cast<int>(plan.picks.size()), limit);
    }
}

}  // namespace
}  // namespace stint::model
