// Expressions, zones, and both changes of clocks by example; walker_test.cpp has them at random.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "base/random.h"
#include "model/calendar/occurrences.h"

namespace stint::model {
namespace {

using namespace std::chrono_literals;
using std::chrono::days;
using std::chrono::sys_days;
using std::chrono::year;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Zone ZoneOf(const std::string& name) {
    std::ifstream file("/usr/share/zoneinfo/" + name, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    auto zone = Zone::Parse(name, bytes);
    EXPECT_TRUE(zone.has_value()) << name << ": " << zone.error().message;
    return *zone;
}

Instant Utc(int y, int month, int day, int hour = 0, int minute = 0, int second = 0) {
    return sys_days{year{y} / month / day} + std::chrono::hours{hour} +
           std::chrono::minutes{minute} + Seconds{second};
}

std::string Text(Local local) {
    auto day = std::chrono::floor<days>(local);
    std::chrono::year_month_day date{day};
    auto time = (local - day).count();
    return fmt::format(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
        static_cast<int>(date.year()),
        static_cast<unsigned>(date.month()),
        static_cast<unsigned>(date.day()),
        time / 3600,
        time / 60 % 60,
        time % 60
    );
}

std::vector<std::string> NextLocals(const char* cron, Instant after, int count) {
    auto parsed = Cron::Parse(cron);
    EXPECT_TRUE(parsed.has_value()) << cron << ": " << parsed.error().message;
    std::vector<std::string> found;
    for (int i = 0; i < count; ++i) {
        auto next = NextOccurrence(*parsed, Zone(), {}, after);
        if (!next) break;
        found.push_back(Text(next->local));
        after = next->at;
    }
    return found;
}

// ---- cron ----

TEST(Cron, FieldsMeanWhatTheyMeanElsewhere) {
    Instant from = Utc(2026, 11, 16, 10, 7, 30);  // a Monday
    EXPECT_THAT(
        NextLocals("* * * * *", from, 2), ElementsAre("2026-11-16 10:08:00", "2026-11-16 10:09:00")
    );
    EXPECT_THAT(
        NextLocals("*/20 * * * *", from, 2),
        ElementsAre("2026-11-16 10:20:00", "2026-11-16 10:40:00")
    );
    EXPECT_THAT(NextLocals("30 2 * * *", from, 1), ElementsAre("2026-11-17 02:30:00"));
    EXPECT_THAT(NextLocals("0 0 2 * * ?", from, 1), ElementsAre("2026-11-17 02:00:00"));
    EXPECT_THAT(
        NextLocals("*/15 * * * * *", from, 2),
        ElementsAre("2026-11-16 10:07:45", "2026-11-16 10:08:00")
    );
    EXPECT_THAT(
        NextLocals("0 9 * * MON-FRI", Utc(2026, 11, 20, 12), 1), ElementsAre("2026-11-23 09:00:00")
    );
    EXPECT_THAT(NextLocals("0 9 * * 7", from, 1), ElementsAre("2026-11-22 09:00:00"));
    EXPECT_THAT(
        NextLocals("0 12 * * fri-mon", from, 3),
        ElementsAre("2026-11-16 12:00:00", "2026-11-20 12:00:00", "2026-11-21 12:00:00")
    );
    EXPECT_THAT(
        NextLocals("0 22-2/2 * * *", from, 3),
        ElementsAre("2026-11-16 22:00:00", "2026-11-17 00:00:00", "2026-11-17 02:00:00")
    );
    EXPECT_THAT(
        NextLocals("5/25 8 * * *", from, 3),
        ElementsAre("2026-11-17 08:05:00", "2026-11-17 08:30:00", "2026-11-17 08:55:00")
    );
    EXPECT_THAT(
        NextLocals("0 0 1 jan,JUL *", from, 2),
        ElementsAre("2027-01-01 00:00:00", "2027-07-01 00:00:00")
    );
    EXPECT_THAT(
        NextLocals("0 0 29 2 *", from, 2), ElementsAre("2028-02-29 00:00:00", "2032-02-29 00:00:00")
    );
    EXPECT_THAT(NextLocals("@weekly", from, 1), ElementsAre("2026-11-22 00:00:00"));
    EXPECT_THAT(NextLocals("@Yearly", from, 1), ElementsAre("2027-01-01 00:00:00"));
}

TEST(Cron, DaysFromTheEndAndNearTheWeekend) {
    Instant from = Utc(2026, 11, 16);
    EXPECT_THAT(
        NextLocals("0 0 L * *", from, 4),
        ElementsAre(
            "2026-11-30 00:00:00",
            "2026-12-31 00:00:00",
            "2027-01-31 00:00:00",
            "2027-02-28 00:00:00"
        )
    );
    EXPECT_THAT(NextLocals("0 0 L-2 * *", from, 1), ElementsAre("2026-11-28 00:00:00"));
    EXPECT_THAT(
        NextLocals("0 0 LW 1 *", from, 1), ElementsAre("2027-01-29 00:00:00")
    );  // the 31st is a Sunday
    EXPECT_THAT(
        NextLocals("0 0 15W 5 *", from, 1), ElementsAre("2027-05-14 00:00:00")
    );  // a Saturday
    EXPECT_THAT(
        NextLocals("0 0 1W 5 *", from, 1), ElementsAre("2027-05-03 00:00:00")
    );  // stays in May
    EXPECT_THAT(NextLocals("0 0 * * FRI#2", from, 1), ElementsAre("2026-12-11 00:00:00"));
    EXPECT_THAT(NextLocals("0 0 * * 5L", from, 1), ElementsAre("2026-11-27 00:00:00"));
    EXPECT_THAT(NextLocals("0 0 ? * 2#5", from, 1), ElementsAre("2026-12-29 00:00:00"));
}

TEST(Cron, DayAndWeekdayTogetherAreEitherUnlessOneIsStarred) {
    Instant from = Utc(2026, 11, 16);  // Monday
    EXPECT_THAT(
        NextLocals("0 0 20 * MON", from, 2),
        ElementsAre("2026-11-20 00:00:00", "2026-11-23 00:00:00")
    );
    EXPECT_THAT(
        NextLocals("0 0 */2 * MON", from, 2),
        ElementsAre("2026-11-23 00:00:00", "2026-12-07 00:00:00")
    );
}

TEST(Cron, RefusalsNameTheFieldTheValueAndTheCure) {
    auto message = [](std::string_view text) {
        auto parsed = Cron::Parse(text);
        return parsed ? "accepted" : parsed.error().message;
    };
    EXPECT_EQ(
        message("61 * * * *"),
        "cron: minute \"61\" must be 0 to 59, a range a-b, a step a/n, a list, or *"
    );
    EXPECT_THAT(message("* 24 * * *"), HasSubstr("hour \"24\""));
    EXPECT_THAT(message("* * 0 * *"), HasSubstr("day of the month \"0\" must be 1 to 31"));
    EXPECT_THAT(message("* * * FOO *"), HasSubstr("month \"FOO\" must be 1 to 12 or JAN to DEC"));
    EXPECT_THAT(message("* * * * 8"), HasSubstr("weekday \"8\" must be 0 to 7 or SUN to SAT"));
    EXPECT_THAT(message("*/0 * * * *"), HasSubstr("needs a step of 1 to 60"));
    EXPECT_THAT(message("1,,2 * * * *"), HasSubstr("empty part"));
    EXPECT_THAT(message("? * * * *"), HasSubstr("use *"));
    EXPECT_THAT(message("* * 40W * *"), HasSubstr("1W to 31W"));
    EXPECT_THAT(message("* * * * MON#6"), HasSubstr("FRI#2"));
    EXPECT_THAT(message("* * * *"), HasSubstr("has 4 fields; it needs five"));
    EXPECT_THAT(message(""), HasSubstr("has 0 fields"));
    EXPECT_THAT(message("@sometimes"), HasSubstr("@daily"));
    EXPECT_THAT(message("0 0 30 2 *"), HasSubstr("never happens"));
    EXPECT_THAT(message("0 0 31 4,6,9,11 *"), HasSubstr("never happens"));
    EXPECT_EQ(message("0 0 31 4,6,9,11 MON"), "accepted") << "a Monday suffices";
    EXPECT_THAT(message(std::string(300, '*')), HasSubstr("at most 200"));
}

// ---- zones ----

TEST(ZoneFile, IsRightBeyondTheLastLineOfItsTable) {
    Zone york = ZoneOf("America/New_York");
    for (int y : {1975, 2026, 2037, 2038, 2050, 2200}) {
        EXPECT_EQ(york.At(Utc(y, 7, 1)).abbreviation, "EDT") << y;
        EXPECT_EQ(york.At(Utc(y, 12, 30)).abbreviation, "EST") << y;
    }
    Zone sydney = ZoneOf("Australia/Sydney");  // summer goes over the end of the year
    EXPECT_EQ(sydney.At(Utc(2051, 1, 5)).offset, 11h);
    EXPECT_EQ(sydney.At(Utc(2051, 7, 5)).offset, 10h);
    EXPECT_EQ(ZoneOf("Asia/Kathmandu").At(Utc(2026, 1, 1)).offset, 5h + 45min);
}

TEST(ZoneFile, PeriodsAdjoin) {
    for (const char* name :
         {"Europe/Berlin", "America/St_Johns", "Africa/Casablanca", "Pacific/Apia"}) {
        Zone zone = ZoneOf(name);
        Instant at = Utc(2000, 1, 1);
        for (int i = 0; i < 200; ++i) {
            ZonePeriod period = zone.At(at);
            ASSERT_LE(period.begin, at) << name;
            ASSERT_GT(period.end, at) << name;
            if (period.end > Utc(2100, 1, 1)) break;
            ASSERT_EQ(zone.At(period.end).begin, period.end) << name;
            at = period.end;
        }
    }
}

TEST(ZoneFile, DamageIsAnErrorNotACrash) {
    std::ifstream file("/usr/share/zoneinfo/Europe/Berlin", std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        EXPECT_FALSE(Zone::Parse("x", std::string_view(bytes).substr(0, length)).has_value())
            << length;
    }
    base::SeededRandom random(5);
    for (int i = 0; i < 3'000; ++i) {
        std::string damaged = bytes;
        for (int k = 0; k < 4; ++k) {
            damaged[random.Below(damaged.size())] = static_cast<char>(random.Below(256));
        }
        if (auto zone = Zone::Parse("x", damaged)) (void)zone->At(Utc(2026, 1, 1));
    }
}

TEST(ZoneName, MayNotLeaveItsDirectory) {
    for (const char* good :
         {"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5"}) {
        EXPECT_TRUE(CheckZoneName(good).has_value()) << good;
    }
    for (const char* bad :
         {"", "/etc/passwd", "../x", "Europe/../..", "a b", "Europe/Berl\xC3\xADn"}) {
        EXPECT_FALSE(CheckZoneName(bad).has_value()) << bad;
    }
}

// ---- both ----

std::vector<std::string> Around(
    const char* cron, ClockChangePolicy policy, Instant from, int count
) {
    static const Zone berlin = ZoneOf("Europe/Berlin");
    std::vector<std::string> found;
    auto parsed = Cron::Parse(cron).value();
    for (int i = 0; i < count; ++i) {
        auto next = NextOccurrence(parsed, berlin, policy, from);
        if (!next) break;
        constexpr std::array kOddities = {"", " moved", " first", " second"};
        found.push_back(
            Text(next->local).substr(5, 11) + kOddities.at(static_cast<std::size_t>(next->oddity))
        );
        from = next->at;
    }
    return found;
}

TEST(Occurrences, ATimeThatDoesNotExistIsMovedOrLeftOut) {
    Instant before = Utc(2026, 3, 28, 12);  // clocks jump from 2 to 3 on the 29th
    EXPECT_THAT(
        Around("30 2 * * *", {}, before, 2), ElementsAre("03-29 03:00 moved", "03-30 02:30")
    );
    EXPECT_THAT(
        Around("30 2 * * *", {.gap = GapPolicy::kSkip}, before, 1), ElementsAre("03-30 02:30")
    );
    EXPECT_THAT(
        Around("*/20 2,3 * * *", {}, before, 3),
        ElementsAre("03-29 03:00 moved", "03-29 03:20", "03-29 03:40")
    ) << "once, although three were missed and 3:00 is one of its own";
    EXPECT_THAT(
        Around("30 * * * *", {}, Utc(2026, 3, 29, 0), 2), ElementsAre("03-29 01:30", "03-29 03:30")
    ) << "every hour counts elapsed time";
}

TEST(Occurrences, ATimeThatComesTwiceIsTakenAsDeclared) {
    Instant before = Utc(2026, 10, 24, 12);  // clocks go back from 3 to 2 on the 25th
    EXPECT_THAT(
        Around("30 2 * * *", {}, before, 2), ElementsAre("10-25 02:30 first", "10-26 02:30")
    );
    EXPECT_THAT(
        Around("30 2 * * *", {.fold = FoldPolicy::kLast}, before, 2),
        ElementsAre("10-25 02:30 second", "10-26 02:30")
    );
    EXPECT_THAT(
        Around("30 2 * * *", {.fold = FoldPolicy::kBoth}, before, 3),
        ElementsAre("10-25 02:30 first", "10-25 02:30 second", "10-26 02:30")
    );
    EXPECT_THAT(
        Around("0 * * * *", {}, Utc(2026, 10, 24, 23), 4),
        ElementsAre("10-25 02:00 first", "10-25 02:00 second", "10-25 03:00", "10-25 04:00")
    );
}

TEST(Occurrences, TimesThatClocksJumpOverAreFound) {
    Zone berlin = ZoneOf("Europe/Berlin");
    auto gap = [&](const char* cron, Instant after, Instant until) {
        return NextInGap(Cron::Parse(cron).value(), berlin, after, until);
    };
    Instant change = Utc(2026, 3, 29, 1);
    auto found = gap("30 2 * * *", Utc(2026, 1, 1), Utc(2026, 6, 1));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->at, change);
    EXPECT_EQ(Text(found->local), "2026-03-29 02:30:00");
    EXPECT_TRUE(gap("30 2 * * *", Utc(2026, 1, 1), change));
    EXPECT_FALSE(gap("30 2 * * *", Utc(2026, 1, 1), change - 1s));
    EXPECT_FALSE(gap("30 2 * * *", change, Utc(2026, 12, 1)));
    EXPECT_FALSE(gap("0 3 * * *", Utc(2026, 1, 1), Utc(2026, 6, 1)));
    EXPECT_FALSE(NextInGap(Cron::Parse("30 2 * * *").value(), Zone(), Utc(2026, 1, 1), change));
}

}  // namespace
}  // namespace stint::model
