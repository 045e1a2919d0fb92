#include "model/claim_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/random.h"
#include "model/limits.h"
#include "model/placement.h"

namespace stint::model {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): units
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Time kNow{std::chrono::seconds{1'000'000}};

WaitingLine Line(int priority, std::initializer_list<std::int64_t> positions, Needs needs = {}) {
    WaitingLine line;
    line.queue = "q";
    line.type = "t";
    line.priority = priority;
    line.needs = std::move(needs);
    for (std::int64_t position : positions) line.waiting.push_back({position, kNow});
    return line;
}

std::vector<std::int64_t> Positions(const std::vector<WaitingLine>& lines, const ClaimPlan& plan) {
    std::vector<std::int64_t> positions;
    for (const ClaimPlan::Pick& pick : plan.picks) {
        positions.push_back(lines[pick.line].waiting[pick.waiter].position);
    }
    return positions;
}

TEST(ClaimPlan, WithoutAnythingSpecialByPriorityAndPlace) {
    base::SeededRandom random(1);
    for (int round = 0; round < 200; ++round) {
        std::vector<WaitingLine> lines;
        std::vector<std::pair<int, std::int64_t>> all;
        std::int64_t position = 0;
        for (int i = 0; i < 6; ++i) {
            WaitingLine line = Line(static_cast<int>(random.Below(3)), {});
            line.tenant = TenantId(1 + static_cast<std::int64_t>(random.Below(2)));
            line.queue = random.Below(2) == 0 ? "a" : "b";
            lines.push_back(line);
        }
        for (int i = 0; i < 30; ++i) {
            WaitingLine& line = lines[random.Below(lines.size())];
            line.waiting.push_back({++position, kNow});
            all.emplace_back(-line.priority, position);
        }
        std::sort(all.begin(), all.end());
        auto limit = static_cast<int>(random.Below(40));
        std::vector<std::int64_t> expected;
        for (const auto& [priority, at] : all) {
            if (static_cast<int>(expected.size()) < limit) expected.push_back(at);
        }
        EXPECT_EQ(Positions(lines, PlanClaim(lines, {.now = kNow}, limit)), expected);
    }
}

TEST(ClaimPlan, ALineThatCannotGoIsLeftAndTheOthersGoOn) {
    std::vector<WaitingLine> lines = {
        Line(200, {1, 2, 3}, {{"gpu", 2}}), Line(100, {4, 5}, {{"gpu", 1}}), Line(10, {6})};
    Offer offer{.now = kNow};
    offer.supplies["gpu"] = {.units = 3, .capacity = 3};
    ClaimPlan plan = PlanClaim(lines, offer, 10);
    EXPECT_THAT(Positions(lines, plan), ElementsAre(1, 4, 6));
    EXPECT_THAT(plan.left[0], ElementsAre(Obstacle{Condition::kResourceFull, "gpu"}));
    EXPECT_THAT(plan.left[1], ElementsAre(Obstacle{Condition::kResourceFull, "gpu"}));
    EXPECT_THAT(plan.left[2], IsEmpty());
    EXPECT_EQ(plan.Taken(0), 1U);
}

TEST(ClaimPlan, NamesEveryObstacleAndWhatItSpeaksOf) {
    WaitingLine line = Line(1, {1}, {{"db", 1}, {"gpu", 2}});
    line.labels = {"arm"};
    Offer offer{.now = kNow};
    offer.withheld = {"db"};
    offer.type_room = {{"t", 0}};
    offer.supplies["db"] = {.closed = true, .until = kNow + 5s};
    offer.supplies["gpu"] = {.units = 1, .capacity = 4, .holders = {TaskId(7), TaskId(8)}};
    std::vector<Obstacle> obstacles = Obstacles(line, offer);
    std::vector<Condition> conditions;
    for (const Obstacle& one : obstacles) conditions.push_back(one.condition);
    EXPECT_THAT(
        conditions,
        ElementsAre(
            Condition::kLabelMissing,
            Condition::kNoRoom,
            Condition::kResourceWithheld,
            Condition::kResourceClosed,
            Condition::kResourceFull
        )
    );
    EXPECT_EQ(Detail(obstacles[0], offer), "label \"arm\"");
    EXPECT_EQ(Detail(obstacles[1], offer), "type \"t\"");
    EXPECT_THAT(Detail(obstacles[3], offer), HasSubstr("\"db\" until 1970-01-12T13:46:45Z"));
    EXPECT_THAT(Detail(obstacles[4], offer), HasSubstr("\"gpu\", capacity 4, held by 7, 8"));
    EXPECT_EQ(Until(obstacles[3], offer), kNow + 5s);
    EXPECT_EQ(Until(obstacles[4], offer), std::nullopt);
}

// Random worlds: nothing is given twice, and nothing that could go is left while there is room.
TEST(ClaimPlan, NeverMoreThanThereIsAndNeverLessThanCouldGo) {
    base::SeededRandom random(2);
    for (int round = 0; round < 2000; ++round) {
        Offer offer{.now = kNow};
        for (const char* name : {"a", "b", "c"}) {
            Supply& supply = offer.supplies[name];
            if (random.Below(4) != 0) supply.units = static_cast<int>(random.Below(5));
            if (random.Below(4) == 0) supply.starts = static_cast<int>(random.Below(3));
            supply.closed = random.Below(8) == 0;
        }
        if (random.Below(3) == 0) offer.queue_room["q"] = static_cast<int>(random.Below(4));
        std::vector<WaitingLine> lines;
        std::int64_t position = 0;
        for (int i = 0; i < 5; ++i) {
            WaitingLine line = Line(static_cast<int>(random.Below(3)), {});
            for (const char* name : {"a", "b", "c"}) {
                if (random.Below(2) == 0) {
                    line.needs.push_back({name, 1 + static_cast<int>(random.Below(2))});
                }
            }
            for (std::uint64_t k = random.Below(4); k > 0; --k) {
                line.waiting.push_back({++position, kNow});
            }
            lines.push_back(line);
        }
        int limit = 1 + static_cast<int>(random.Below(10));
        ClaimPlan plan = PlanClaim(lines, offer, limit);
        Offer left = offer;
        for (const ClaimPlan::Pick& pick : plan.picks) {
            ASSERT_THAT(Obstacles(lines[pick.line], left), IsEmpty()) << "round " << round;
            for (const Need& need : lines[pick.line].needs) {
                Supply& supply = left.supplies[need.resource];
                if (supply.units) *supply.units -= need.units;
                if (supply.starts) --*supply.starts;
            }
            if (left.queue_room.contains("q")) --left.queue_room["q"];
        }
        if (static_cast<int>(plan.picks.size()) == limit) continue;
        for (std::size_t i = 0; i < lines.size(); ++i) {
            bool rest = plan.Taken(i) < lines[i].waiting.size();
            ASSERT_EQ(rest, !plan.left[i].empty()) << "round " << round;
            if (rest) ASSERT_FALSE(Obstacles(lines[i], left).empty()) << "round " << round;
        }
    }
}

TEST(ClaimPlan, TenantsShareByWeightAndNobodyIdles) {
    base::SeededRandom random(3);
    for (int round = 0; round < 300; ++round) {
        Offer offer{.now = kNow};
        QueueOrder& order = offer.orders["q"];
        order.fair = true;
        std::vector<WaitingLine> lines;
        std::int64_t position = 0;
        for (int tenant = 1; tenant <= 4; ++tenant) {
            WaitingLine line = Line(5, {});
            line.tenant = TenantId(tenant);
            order.weights[line.tenant] = 1 + static_cast<int>(random.Below(4));
            for (std::uint64_t k = random.Below(40); k > 0; --k) {
                line.waiting.push_back({++position, kNow});
            }
            lines.push_back(line);
        }
        auto limit = static_cast<int>(random.Below(60));
        ClaimPlan plan = PlanClaim(lines, offer, limit);
        std::size_t all = 0;
        for (const WaitingLine& line : lines) all += line.waiting.size();
        ASSERT_EQ(plan.picks.size(), std::min(all, static_cast<std::size_t>(limit)));
        // Who still waits is at most one task behind anybody, by weight.
        for (std::size_t i = 0; i < lines.size(); ++i) {
            if (plan.Taken(i) == lines[i].waiting.size()) continue;
            for (std::size_t k = 0; k < lines.size(); ++k) {
                double own = static_cast<double>(plan.Taken(i)) / order.weights[lines[i].tenant];
                double other = static_cast<double>(plan.Taken(k)) / order.weights[lines[k].tenant];
                ASSERT_LE(other, own + 1.0 / order.weights[lines[k].tenant] + 1e-9);
            }
        }
    }
}

// One slot, and completions over time: what counts is what each was given, not what runs.
TEST(ClaimPlan, OneSlotIsSharedOverTime) {
    base::SeededRandom random(5);
    for (int round = 0; round < 50; ++round) {
        Offer offer{.now = kNow};
        QueueOrder& order = offer.orders["q"];
        order.fair = true;
        std::vector<WaitingLine> lines;
        std::map<TenantId, int> served;
        std::int64_t position = 0;
        for (int tenant = 1; tenant <= 4; ++tenant) {
            WaitingLine line = Line(5, {});
            line.tenant = TenantId(tenant);
            order.weights[line.tenant] = 1 + static_cast<int>(random.Below(4));
            // The first has ten thousand before anybody else comes.
            for (int k = 0; k < (tenant == 1 ? 10'000 : 200); ++k) {
                line.waiting.push_back({++position, kNow});
            }
            lines.push_back(line);
        }
        // The last one comes later, with no credit for the time before.
        WaitingLine late = lines.back();
        lines.pop_back();
        auto serve = [&](int turns) {
            for (int i = 0; i < turns; ++i) {
                ClaimPlan plan = PlanClaim(lines, offer, 1);
                ASSERT_EQ(plan.picks.size(), 1U);
                WaitingLine& line = lines[plan.picks[0].line];
                Give(offer.leads["q"], line.tenant, plan.picks[0].had);
                ++served[line.tenant];
                line.waiting.erase(line.waiting.begin());
            }
        };
        auto check = [&] {
            for (const WaitingLine& a : lines) {
                for (const WaitingLine& b : lines) {
                    double own = static_cast<double>(served[a.tenant]) / order.weights[a.tenant];
                    double other = static_cast<double>(served[b.tenant]) / order.weights[b.tenant];
                    ASSERT_LE(other, own + 1.0 / order.weights[b.tenant] + 1e-6);
                }
            }
        };
        serve(static_cast<int>(random.Below(60)));
        check();
        lines.push_back(late);
        served.clear();
        serve(60);
        for (const WaitingLine& line : lines) {
            double own = static_cast<double>(served[line.tenant]) / order.weights[line.tenant];
            double first = static_cast<double>(served[TenantId(1)]) / order.weights[TenantId(1)];
            ASSERT_NEAR(own, first, 2.0) << "round " << round;
        }
    }
}

// Tenants whose tasks go first anyway, because of their priority, and tenants that only some
// workers can serve: what they are given costs nobody else a turn. Two kinds of worker with one
// slot each, whose types overlap or do not, and an urgent tenant, all at random.
TEST(ClaimPlan, NobodyStarvesWhoeverElseIsServed) {
    base::SeededRandom random(8);
    for (int round = 0; round < 100; ++round) {
        Offer offer{.now = kNow};
        QueueOrder& order = offer.orders["q"];
        order.fair = true;
        std::int64_t position = 0;
        std::vector<WaitingLine> lines;
        for (int tenant = 1; tenant <= 4; ++tenant) {
            WaitingLine line = Line(5, {});
            line.tenant = TenantId(tenant);
            line.type = tenant <= 2 ? "a" : "b";
            order.weights[line.tenant] = 1 + static_cast<int>(random.Below(3));
            for (int k = 0; k < 3; ++k) line.waiting.push_back({++position, kNow});
            lines.push_back(line);
        }
        const std::vector<std::set<std::string>> workers = {
            {"a"},
            random.Below(2) == 0 ? std::set<std::string>{"b"} : std::set<std::string>{"a", "b"}};
        const std::uint64_t urgent = 3 + 2 * random.Below(3);  // every so many turns of both
        std::map<TenantId, int> served;
        for (std::uint64_t turn = 0; turn < 400; ++turn) {
            std::vector<WaitingLine> seen;
            std::vector<std::size_t> which;
            for (std::size_t i = 0; i < lines.size(); ++i) {
                if (!workers[turn % 2].contains(lines[i].type)) continue;
                seen.push_back(lines[i]);
                which.push_back(i);
            }
            if (turn % urgent == 0) {
                WaitingLine line = Line(9, {++position});
                line.tenant = TenantId(random.Below(2) == 0 ? 9 : 4);
                seen.push_back(line);
            }
            ClaimPlan plan = PlanClaim(seen, offer, 1);
            ASSERT_EQ(plan.picks.size(), 1U);
            const ClaimPlan::Pick& pick = plan.picks[0];
            Give(offer.leads["q"], seen[pick.line].tenant, pick.had);
            if (pick.line >= which.size()) continue;
            WaitingLine& line = lines[which[pick.line]];
            ++served[line.tenant];
            line.waiting.erase(line.waiting.begin());
            line.waiting.push_back({++position, kNow});
        }
        // Those that are always served by the same workers have their shares of what these serve.
        for (auto [a, b] : {std::pair(1, 2), std::pair(3, 4)}) {
            const bool mixed = b == 4;  // it is also the urgent one at times
            double one = static_cast<double>(served[TenantId(a)]) / order.weights[TenantId(a)];
            double two = static_cast<double>(served[TenantId(b)]) / order.weights[TenantId(b)];
            ASSERT_GT(std::min(one, two), 0) << "round " << round << ", " << a << " and " << b;
            if (!mixed && workers[1].size() == 1) {
                ASSERT_NEAR(one, two, 2.0) << "round " << round;
            }
        }
    }
}

TEST(Shares, WhoHadNothingToDoHasSavedNothingUp) {
    Leads leads{{TenantId(1), 1000.0}, {TenantId(2), 3.0}};
    Contest contest(leads);
    contest.Enter(TenantId(1), 1);
    contest.Enter(TenantId(2), 1);
    contest.Enter(TenantId(3), 1);
    EXPECT_TRUE(contest.Before(TenantId(2), TenantId(1)));
    EXPECT_DOUBLE_EQ(contest.Had(TenantId(2)), 999.0) << "one turn, not a thousand";
    EXPECT_DOUBLE_EQ(contest.Had(TenantId(3)), 999.0) << "who is new is not behind";
    EXPECT_TRUE(contest.Before(TenantId(2), TenantId(3))) << "it has waited longer";
}

TEST(Shares, StrangersBeginWhereTheQueueIs) {
    Leads leads{{TenantId(1), 1000.0}};
    Contest contest(leads);
    contest.Enter(TenantId(2), 1);
    contest.Enter(TenantId(3), 1);
    EXPECT_DOUBLE_EQ(contest.Had(TenantId(2)), 1000.0);
    EXPECT_FALSE(contest.Before(TenantId(2), TenantId(3)));
    EXPECT_FALSE(contest.Before(TenantId(3), TenantId(2)));
}

TEST(Shares, OfVeryManyTenantsThoseAreForgottenThatHadLeast) {
    Leads leads;
    for (int i = 0; i < 3000; ++i) Give(leads, TenantId(1 + i), i);
    EXPECT_EQ(leads.size(), limits::kLeads);
    EXPECT_EQ(leads.begin()->first, TenantId(3001 - static_cast<int>(limits::kLeads)));
}

// A steady flow of tasks that need one unit, one that needs several, or several resources: it
// starts, at the latest when those that run by the time its patience ends are over.
TEST(ClaimPlan, WhoNeedsMuchIsNotPassedForEver) {
    base::SeededRandom random(6);
    for (int round = 0; round < 200; ++round) {
        const int capacity = 2 + static_cast<int>(random.Below(6));
        std::map<std::string, int> held;
        std::vector<WaitingLine> lines = {
            Line(
                5,
                {1},
                {{"a",
                  2 + static_cast<int>(random.Below(static_cast<std::uint64_t>(capacity - 1)))}}
            ),
            Line(5, {}, {{"a", 1}}),
            Line(5, {}, {{"b", 1}})};
        if (random.Below(2) == 0) lines[0].needs.push_back({"b", 1});
        struct Running {
            std::string resource;
            Time until;
        };
        std::vector<Running> running;
        std::int64_t position = 2;
        Time now = kNow;
        const Duration longest = 20s;
        bool taken = false;
        for (; !taken && now < kNow + 2h; now += 1s) {
            std::erase_if(running, [&](const Running& one) {
                if (one.until > now) return false;
                --held[one.resource];
                return true;
            });
            for (std::size_t i : {1U, 2U}) {
                while (lines[i].waiting.size() < 10) lines[i].waiting.push_back({position++, now});
            }
            Offer offer{.now = now};
            for (const char* name : {"a", "b"}) {
                offer.supplies[name] = {.units = capacity - held[name], .capacity = capacity};
            }
            ClaimPlan plan = PlanClaim(lines, offer, 100);
            for (const ClaimPlan::Pick& pick : plan.picks) {
                taken |= pick.line == 0;
                for (const Need& need : lines[pick.line].needs) {
                    held[need.resource] += need.units;
                    ASSERT_LE(held[need.resource], capacity);
                }
                auto ran = std::chrono::seconds(1 + random.Below(20));
                if (pick.line != 0)
                    running.push_back({lines[pick.line].needs[0].resource, now + ran});
            }
            for (std::size_t i : {1U, 2U}) {
                auto gone = static_cast<std::ptrdiff_t>(plan.Taken(i));
                lines[i].waiting.erase(lines[i].waiting.begin(), lines[i].waiting.begin() + gone);
            }
        }
        EXPECT_TRUE(taken) << "round " << round;
        EXPECT_LE(now, kNow + limits::kKeepAllAfter + longest + 2s) << "round " << round;
    }
}

// What is kept for one is not kept from those that need something else; nor for who could never go.
TEST(ClaimPlan, KeepsNoMoreThanCanBeUsed) {
    std::vector<WaitingLine> lines = {
        Line(9, {1}, {{"gpu", 3}}), Line(5, {2}, {{"gpu", 1}}), Line(5, {3}, {{"disk", 1}})};
    lines[0].waiting[0].since = kNow - 1h;
    Offer offer{.now = kNow};
    offer.supplies["gpu"] = {.units = 2, .capacity = 3};
    offer.supplies["disk"] = {.units = 1, .capacity = 1};
    ClaimPlan plan = PlanClaim(lines, offer, 10);
    EXPECT_THAT(Positions(lines, plan), ElementsAre(3));
    EXPECT_THAT(Detail(plan.left[1].at(0), offer), HasSubstr("kept for"));
    offer.supplies["gpu"].capacity = 2;
    EXPECT_THAT(Positions(lines, PlanClaim(lines, offer, 10)), ElementsAre(2, 3));
    EXPECT_THAT(
        Detail(PlanClaim(lines, offer, 10).left[0].at(0), offer),
        HasSubstr("never, until its capacity is raised to 3")
    );
    offer.supplies["gpu"].capacity = 3;
    lines[0].labels = {"arm"};
    EXPECT_THAT(Positions(lines, PlanClaim(lines, offer, 10)), ElementsAre(2, 3))
        << "it waits for more than units";
}

TEST(ClaimPlan, ALineThatIsOnlyLookedAtHasItsTurnButIsNotTaken) {
    std::vector<WaitingLine> lines = {
        Line(9, {1, 2}, {{"gpu", 1}, {"disk", 1}}), Line(5, {3}, {{"gpu", 1}})};
    lines[0].look_only = true;
    Offer offer{.now = kNow};
    offer.supplies["gpu"] = {.units = 1, .capacity = 1};
    offer.supplies["disk"] = {.units = 5, .capacity = 5};
    ClaimPlan plan = PlanClaim(lines, offer, 10);
    EXPECT_THAT(plan.picks, IsEmpty());
    EXPECT_TRUE(plan.passed_over);
    offer.supplies["gpu"] = {.units = 2, .capacity = 2};
    EXPECT_THAT(Positions(lines, PlanClaim(lines, offer, 10)), ElementsAre(3));
}

// However much of higher priority keeps coming, a task waits at most as long as its way up takes,
// and then only for what was there before it.
TEST(ClaimPlan, AgingBoundsTheWait) {
    constexpr Duration kStep = 1s;
    base::SeededRandom random(4);
    for (int round = 0; round < 20; ++round) {
        const int low = static_cast<int>(random.Below(200));
        std::vector<WaitingLine> lines = {Line(low, {0}), Line(255, {})};
        QueueOrder order{.queue = "q", .aging = kStep};
        Time now = kNow;
        std::int64_t position = 1;
        int backlog = static_cast<int>(random.Below(50));
        for (int i = 0; i < backlog; ++i) lines[1].waiting.push_back({position++, now});
        bool taken = false;
        int turns = 0;
        // One is taken for each that comes: without aging the first would wait for ever.
        for (; !taken && turns < 10'000; ++turns, now += kStep) {
            lines[1].waiting.push_back({position++, now});
            ClaimPlan plan = PlanClaim(lines, {.now = now, .orders = {{"q", order}}}, 1);
            ASSERT_EQ(plan.picks.size(), 1U);
            taken = plan.picks[0].line == 0;
            if (!taken) lines[1].waiting.erase(lines[1].waiting.begin());
        }
        EXPECT_TRUE(taken);
        EXPECT_LE(turns, limits::kPriorityMax - low + 1);
    }
    EXPECT_EQ(AgedPriority(250, 1s, kNow, kNow + 1h), limits::kPriorityMax);
    EXPECT_EQ(AgedPriority(100, 1s, kNow, kNow - 1h), 100);
    EXPECT_EQ(AgedPriority(100, 0s, kNow, kNow + 1h), 100);
}

// One that comes back to its place again and again is young each time: those behind it are not.
TEST(ClaimPlan, AgingBoundsTheWaitBehindWhoComesBack) {
    constexpr int kLow = 100;
    std::vector<WaitingLine> lines = {Line(kLow, {0, 1}), Line(200, {})};
    QueueOrder order{.queue = "q", .aging = 1s};
    Time now = kNow;
    std::int64_t position = 2;
    int turns = 0;
    for (bool taken = false; !taken && turns < 1'000; ++turns, now += 1s) {
        lines[1].waiting.push_back({position++, now});
        ClaimPlan plan = PlanClaim(lines, {.now = now, .orders = {{"q", order}}}, 1);
        ASSERT_EQ(plan.picks.size(), 1U);
        auto [line, waiter, had, group] = plan.picks[0];
        taken = lines[line].waiting[waiter].position == 1;
        if (line == 0) {
            lines[0].waiting[waiter].since = now + 1s;
        } else {
            lines[1].waiting.erase(lines[1].waiting.begin() + static_cast<std::ptrdiff_t>(waiter));
        }
    }
    EXPECT_LE(turns, limits::kPriorityMax - kLow + 2);
}

TEST(Placement, HasOneText) {
    Placement one{.needs = {{"GPU", 1}, {"disk", 2}}, .labels = {"b", "a", "b"}};
    Placement other{.needs = {{"disk", 2}, {"gpu", 1}}, .labels = {"a", "b"}};
    EXPECT_EQ(PlacementText(one), PlacementText(other));
    EXPECT_EQ(PlacementOf(PlacementText(one)), other);
    EXPECT_EQ(PlacementText({}), "");
    EXPECT_EQ(PlacementOf(""), Placement{});
    EXPECT_EQ(
        Together({{"a", 1}, {"b", 2}}, {{"B", 1}, {"c", 1}}), (Needs{{"a", 1}, {"b", 2}, {"c", 1}})
    );
}

TEST(Placement, RefusesByNameAndValue) {
    EXPECT_THAT(ValidateNeeds("needs", {{"", 1}}).error().message, HasSubstr("needs is empty"));
    EXPECT_THAT(ValidateNeeds("needs", {{"a*", 1}}).error().message, HasSubstr("\"a*\""));
    EXPECT_THAT(ValidateNeeds("needs", {{"a", -1}}).error().message, HasSubstr("-1 units"));
    EXPECT_THAT(ValidateNeeds("needs", Needs(17, {"a"})).error().message, HasSubstr("17"));
    EXPECT_THAT(ValidateNeeds("needs", {{"Queue:a", 1}}).error().message, HasSubstr("\"Queue:a\""));
    EXPECT_FALSE(ValidateNeeds("needs", {{"type:a", 1}}).has_value());
    EXPECT_TRUE(ValidateNeeds("needs", {{"queues", 1}}).has_value());
    EXPECT_TRUE(ValidateResourceName("name", "host:*", true).has_value());
    EXPECT_FALSE(ValidateResourceName("name", "h*st", true).has_value());
    EXPECT_THAT(ValidateLabels("labels", {"a b"}).error().message, HasSubstr("\"a b\""));
}

TEST(QueueOrder, IsChecked) {
    EXPECT_TRUE(Validate(QueueOrder{.queue = "*", .fair = true}).has_value());
    EXPECT_FALSE(Validate(QueueOrder{.queue = ""}).has_value());
    QueueOrder order{.queue = "q"};
    order.weights[TenantId(3)] = 0;
    EXPECT_THAT(Validate(order).error().message, HasSubstr("tenant 3 is 0"));
}

}  // namespace
}  // namespace stint::model
