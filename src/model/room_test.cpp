#include "model/room.h"

#include <gmock/gmock.h>

#include "model/claim_plan.h"
#include "model/limits.h"

namespace stint::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TEST(Room, OfANameIsItsOwnOrThatOfTheLongestPattern) {
    Room room = {{"host:*", 3}, {"host:a*", 2}, {"host:ab", 1}};
    EXPECT_EQ(RoomOf(room, "host:ab"), 1);
    EXPECT_EQ(RoomOf(room, "host:ac"), 2);
    EXPECT_EQ(RoomOf(room, "host:x"), 3);
    EXPECT_EQ(RoomOf(room, "gpu"), std::nullopt);
    EXPECT_EQ(RoomOf({{"q*", 0}}, "queue:mail"), std::nullopt) << "queues are no names of patterns";
}

TEST(Room, TakenOfAPatternIsTakenOfThatNameOnly) {
    Room room = {{"host:*", 2}, {"gpu", 1}};
    TakeRoom(room, "host:a");
    TakeRoom(room, "host:a");
    TakeRoom(room, "host:a");
    TakeRoom(room, "gpu");
    TakeRoom(room, "without");
    EXPECT_THAT(room, ElementsAre(Pair("gpu", 0), Pair("host:*", 2), Pair("host:a", 0)));
}

TEST(Room, IsRefusedWithTheCure) {
    auto refusal = [](const std::map<std::string, int>& given) {
        auto room = RoomFrom("limits", given);
        return room ? std::string("accepted") : room.error().message;
    };
    EXPECT_THAT(RoomFrom("limits", {{"GPU", 2}}).value(), ElementsAre(Pair("gpu", 2)));
    EXPECT_THAT(refusal({{"gpu", limits::kSlots}}), "accepted");
    EXPECT_THAT(refusal({{"gpu", limits::kSlots + 1}}), HasSubstr("limits of \"gpu\" is 4097"));
    EXPECT_THAT(refusal({{"gpu", -1}}), HasSubstr("between 0 (none of it) and 4096"));
    EXPECT_THAT(refusal({{"", 1}}), HasSubstr("limits is empty"));
    EXPECT_THAT(refusal({{"*", 1}}), HasSubstr("such as host:*"));
    EXPECT_THAT(refusal({{"ho*st", 1}}), HasSubstr("limits is \"ho*st\""));
    EXPECT_THAT(refusal({{"Type:t", 1}}), HasSubstr("at_once_per_worker"));
    EXPECT_THAT(refusal({{"a", 1}, {"A", 1}}), HasSubstr("twice"));
}

TEST(Room, EndsInThePlanWithTheAttemptsThatItTakes) {
    WaitingLine a, b, both;
    a.queue = b.queue = both.queue = "q";
    a.needs = {{"host:a", 1}};
    b.needs = {{"host:b", 5}};
    both.needs = {{"host:a", 1}, {"host:b", 1}};
    a.waiting = {{1}, {4}, {7}};
    b.waiting = {{2}, {5}};
    both.waiting = {{3}, {6}};
    Offer offer;
    offer.resource_room = {{"host:*", 2}, {"host:b", 1}};
    std::vector<WaitingLine> lines = {a, b, both};
    ClaimPlan plan = PlanClaim(lines, offer, 10);
    EXPECT_EQ(plan.Taken(0), 2) << "as many as there is room for";
    EXPECT_EQ(plan.Taken(1), 1) << "attempts count, not units";
    EXPECT_EQ(plan.Taken(2), 0) << "all that it needs must have room";
    EXPECT_THAT(plan.left[0], ElementsAre(Obstacle{Condition::kNoRoom, "host:a"}));
    EXPECT_THAT(plan.left[2], ElementsAre(Obstacle{Condition::kNoRoom, "host:b"}));
    EXPECT_EQ(Detail(plan.left[2].front(), offer), "resource \"host:b\"");
    offer.resource_room.clear();
    EXPECT_THAT(PlanClaim(lines, offer, 10).left, testing::Each(IsEmpty()));
}

}  // namespace
}  // namespace stint::model
