// Cron expressions: which local times they name. No zones here, no clock: see occurrences.h.
//
// Five fields (minute hour day month weekday) or six with seconds first, or a name: @yearly,
// @monthly, @weekly, @daily, @hourly. Each field is *, ?, a number, a name (JAN, MON), a range
// a-b, a step */n, a/n or a-b/n, or a list of these. Ranges may go over the end: FRI-MON, 22-2.
// Days: L (last of the month), L-3, 15W (the weekday nearest to the 15th), LW. Weekdays: 0 or 7 is
// Sunday; FRIL or 5L (last Friday), FRI#2 or 5#2 (second Friday).
//
// When both the day and the weekday are given and neither begins with *, either of them suffices,
// as in crontab(5).
#pragma once

#include <stint/result.h>

#include <array>
#include <bitset>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace stint::model {

class Cron {
public:
    // Refuses what can never happen (30 February), naming the field and the reason.
    static Result<Cron> Parse(std::string_view text);

    const std::string& text() const { return text_; }
    bool Matches(std::chrono::local_seconds local) const;
    // The first match after `local`, strictly. None only near the end of the calendar.
    std::optional<std::chrono::local_seconds> Next(std::chrono::local_seconds local) const;
    // Every hour of the day: such schedules count elapsed time over a change of clocks.
    bool every_hour() const { return hours_.count() == 24; }

private:
    class Parser;
    bool MatchesDay(std::chrono::local_days day) const;
    bool MatchesDayOfMonth(const std::chrono::year_month_day& date) const;
    bool MatchesWeekday(const std::chrono::year_month_day& date, std::chrono::weekday day) const;
    std::optional<std::chrono::seconds> NextInDay(std::chrono::seconds from) const;

    std::string text_;
    std::bitset<60> seconds_, minutes_;
    std::bitset<24> hours_;
    std::bitset<32> days_;                                // 1 … 31
    std::bitset<13> months_;                              // 1 … 12
    std::bitset<7> weekdays_;                             // Sunday = 0
    std::bitset<31> from_last_;                           // L-n; 0 = L
    std::bitset<32> nearest_;                             // nW
    bool last_weekday_ = false;                           // LW
    std::bitset<7> last_;                                 // nL
    std::array<std::bitset<6>, 7> nth_{};                 // n#k
    bool day_given_ = false, weekday_given_ = false;      // not *, which is also ?
    bool day_starred_ = false, weekday_starred_ = false;  // begins with *: both must match
};

}  // namespace stint::model
