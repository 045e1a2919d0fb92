// Occurrences against a walker that shares no code with them but the zone's offsets: it reads the
// expression itself, looks at every minute (or second) of the real time line, and says what happens
// there. Random expressions, zones and policies; around the changes of clocks, where errors live.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>

#include "base/random.h"
#include "model/calendar/occurrences.h"

namespace stint::model {
namespace {

using std::int64_t;
using std::chrono::sys_days;
using std::chrono::year;

constexpr int64_t kMinute = 60, kHour = 3600, kDay = 86'400;

// ---- what an expression means ------------------------------------------------------------------

std::vector<std::string> Split(const std::string& text, char at) {
    std::vector<std::string> parts(1);
    for (char c : text) {
        if (c == at) {
            parts.emplace_back();
        } else {
            parts.back() += c;
        }
    }
    return parts;
}

int DayNumber(const std::string& text) {
    static const std::vector<std::string> kNames = {
        "SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"};
    for (std::size_t i = 0; i < kNames.size(); ++i) {
        if (text == kNames[i]) return static_cast<int>(i);
    }
    return std::stoi(text);
}

// The numbers of a list of ranges with steps, below `low` + `length`; ranges go over the end.
std::vector<char> Numbers(const std::string& field, int low, int length) {
    std::vector<char> set(static_cast<std::size_t>(low + length));
    for (const std::string& part : Split(field, ',')) {
        std::vector<std::string> step = Split(part, '/');
        std::vector<std::string> range = Split(step[0], '-');
        int from = low, to = low + length - 1;
        if (step[0] != "*" && step[0] != "?") {
            from = DayNumber(range[0]);
            if (range.size() > 1) {
                to = DayNumber(range[1]);
            } else if (step.size() == 1) {
                to = from;
            }
            if (to < from) to += length;
        }
        for (int n = from; n <= to; n += step.size() > 1 ? std::stoi(step[1]) : 1) {
            set[static_cast<std::size_t>((n - low) % length + low)] = 1;
        }
    }
    return set;
}

class Meaning {
public:
    explicit Meaning(const std::string& text) {
        std::vector<std::string> words = Split(text, ' ');
        if (words.size() == 5) words.insert(words.begin(), "0");
        second_ = Numbers(words[0], 0, 60);
        minute_ = Numbers(words[1], 0, 60);
        hour_ = Numbers(words[2], 0, 24);
        every_hour_ = std::count(hour_.begin(), hour_.end(), 1) == 24;
        day_ = words[3];
        month_ = Numbers(words[4], 1, 12);
        weekday_ = words[5];
        if (day_.find_first_of("LW") == std::string::npos) days_ = Numbers(day_, 1, 31);
        if (weekday_.find('#') == std::string::npos && weekday_.back() != 'L') {
            weekdays_ = Numbers(weekday_, 0, 7);
        }
    }

    bool every_hour() const { return every_hour_; }
    // Seconds since 1970 of the local clock.
    bool Is(int64_t local) {
        int64_t second = local % kDay;
        if (minute_[static_cast<std::size_t>(second / 60 % 60)] == 0) return false;
        if (hour_[static_cast<std::size_t>(second / kHour)] == 0) return false;
        if (second_[static_cast<std::size_t>(second % 60)] == 0) return false;
        return IsDay(local / kDay);
    }
    bool IsDay(int64_t number) {
        if (number == known_day_) return known_;
        known_day_ = number;
        return known_ = LookAtDay(number);
    }

private:
    bool LookAtDay(int64_t number) const {
        std::chrono::year_month_day date{sys_days{std::chrono::days{number}}};
        if (month_[static_cast<unsigned>(date.month())] == 0) return false;
        int day = static_cast<int>(static_cast<unsigned>(date.day()));
        int last = static_cast<int>(
            static_cast<unsigned>((date.year() / date.month() / std::chrono::last).day())
        );
        int on = static_cast<int>((number + 4) % 7);  // 1970 began on a Thursday
        bool any_day = day_ == "*" || day_ == "?", any_weekday = weekday_ == "*" || weekday_ == "?";
        bool by_day = any_day || ByDay(day, last, on);
        bool by_weekday = any_weekday || ByWeekday(day, last, on);
        // crontab(5): a field that begins with * restricts, two that do not offer a choice.
        bool choice = !any_day && !any_weekday && day_[0] != '*' && weekday_[0] != '*';
        return choice ? by_day || by_weekday : by_day && by_weekday;
    }
    bool ByDay(int day, int last, int on) const {
        if (!days_.empty()) return days_[static_cast<std::size_t>(day)] != 0;
        if (day_ == "L") return day == last;
        if (day_ == "LW") return day == Nearest(last, last, day, on);
        if (day_[0] == 'L') return day == last - std::stoi(day_.substr(2));
        int wanted = std::stoi(day_);  // 15W
        return wanted <= last && day == Nearest(wanted, last, day, on);
    }
    // The day from Monday to Friday that is nearest to `wanted`, given that `day` is a weekday
    // `on`.
    static int Nearest(int wanted, int last, int day, int on) {
        for (int away : {0, -1, 1, -2, 2}) {
            int there = wanted + away, its = (((on + there - day) % 7) + 7) % 7;
            if (there >= 1 && there <= last && its >= 1 && its <= 5) return there;
        }
        return 0;
    }
    bool ByWeekday(int day, int last, int on) const {
        if (!weekdays_.empty()) return weekdays_[static_cast<std::size_t>(on)] != 0;
        if (weekday_.back() == 'L') {
            return on == DayNumber(weekday_.substr(0, weekday_.size() - 1)) % 7 && day > last - 7;
        }
        std::vector<std::string> parts = Split(weekday_, '#');
        return on == DayNumber(parts[0]) % 7 && (day + 6) / 7 == std::stoi(parts[1]);
    }

    std::vector<char> second_, minute_, hour_, month_, days_, weekdays_;
    std::string day_, weekday_;
    int64_t known_day_ = -1;
    bool known_ = false;
    bool every_hour_ = false;
};

// ---- the walker --------------------------------------------------------------------------------

struct Case {
    std::string text;
    const Zone* zone = nullptr;
    ClockChangePolicy policy;
    bool with_seconds = false;
};

int64_t Count(Instant at) {
    return at.time_since_epoch().count();
}
Instant At(int64_t count) {
    return Instant{Seconds{count}};
}

class Walker {
public:
    explicit Walker(const Case& what)
        : case_(what), meaning_(what.text), step_(what.with_seconds ? 1 : kMinute) {}

    // What happens in [from, to).
    std::vector<int64_t> Between(int64_t from, int64_t to) {
        std::vector<int64_t> found;
        Enter(from);
        for (int64_t at = from; at < to; at += step_) {
            if (at >= end_) Enter(at);
            if (Happens(at)) found.push_back(at);
        }
        return found;
    }
    bool IsDay(int64_t number) { return meaning_.IsDay(number); }

private:
    void Enter(int64_t at) {
        period_ = case_.zone->At(At(at));
        begin_ = Count(period_.begin);
        end_ = Count(period_.end);
        offset_ = period_.offset.count();
    }
    bool Happens(int64_t at) {
        int64_t local = at + offset_;
        bool matches = meaning_.Is(local);
        if (meaning_.every_hour()) return matches;
        if (at == begin_ && case_.policy.gap == GapPolicy::kEndOfGap) {
            // What the clocks jumped over happens when they have.
            int64_t before = at + case_.zone->At(At(at - 1)).offset.count();
            for (int64_t missed = before; missed < local; missed += step_) {
                if (meaning_.Is(missed)) return true;
            }
        }
        if (!matches || case_.policy.fold == FoldPolicy::kBoth) return matches;
        return case_.policy.fold == FoldPolicy::kFirst ? !CameBefore(at, local)
                                                       : !ComesAgain(at, local);
    }
    static bool Shows(const ZonePeriod& period, int64_t local) {
        int64_t at = local - period.offset.count();
        return at >= Count(period.begin) && at < Count(period.end);
    }
    bool CameBefore(int64_t at, int64_t local) const {
        for (ZonePeriod other = period_; Count(other.begin) > at - 27 * kHour;) {
            other = case_.zone->At(other.begin - Seconds{1});
            if (Shows(other, local)) return true;
        }
        return false;
    }
    bool ComesAgain(int64_t at, int64_t local) const {
        for (ZonePeriod other = period_; Count(other.end) < at + 27 * kHour;) {
            other = case_.zone->At(other.end);
            if (Shows(other, local)) return true;
        }
        return false;
    }

    const Case& case_;
    Meaning meaning_;
    const int64_t step_;
    ZonePeriod period_;
    int64_t begin_ = 0, end_ = 0, offset_ = 0;
};

using NextOf = std::function<std::optional<Instant>(const Cron&, const Case&, Instant after)>;

std::optional<Instant> OurNext(const Cron& cron, const Case& what, Instant after) {
    auto found = NextOccurrence(cron, *what.zone, what.policy, after);
    return found ? std::optional(found->at) : std::nullopt;
}

std::string Told(const Case& what, const std::string& how, int64_t at) {
    return fmt::format(
        "\"{}\" in {}, gap {} fold {}: {} at {}",
        what.text,
        what.zone->name(),
        static_cast<int>(what.policy.gap),
        static_cast<int>(what.policy.fold),
        how,
        at
    );
}

// Everything in [from, to), or as much of it as the first answers cover. Empty: they agree.
std::string DisagreementNear(
    const NextOf& next, const Cron& cron, const Case& what, int64_t from, int64_t to
) {
    constexpr std::size_t kAnswers = 15;
    std::vector<int64_t> found;
    int64_t at = from - 1;
    while (found.size() < kAnswers) {
        auto answer = next(cron, what, At(at));
        if (!answer || Count(*answer) >= to) break;
        if (Count(*answer) <= at) return Told(what, "it goes back", at);
        found.push_back(at = Count(*answer));
    }
    if (found.size() == kAnswers) to = at + 1;
    std::vector<int64_t> expected = Walker(what).Between(from, to);
    for (std::size_t i = 0; i < std::max(found.size(), expected.size()); ++i) {
        if (i >= expected.size()) return Told(what, "nothing happens, and it says so", found[i]);
        if (i >= found.size() || found[i] > expected[i]) {
            return Told(what, "left out", expected[i]);
        }
        if (found[i] < expected[i]) return Told(what, "too much", found[i]);
    }
    return "";
}

// Between two answers that are far apart: no day in between has anything.
std::string DisagreementFar(
    const NextOf& next, const Cron& cron, const Case& what, int64_t from, int& days
) {
    auto answer = next(cron, what, At(from));
    if (!answer) return Told(what, "never again", from);
    Walker walker(what);
    int64_t until = std::min(Count(*answer), from + 1'500 * kDay);
    for (int64_t day = from / kDay + 2; day < until / kDay - 1; ++day, ++days) {
        if (!walker.IsDay(day)) continue;
        // That day in any zone, as clocks may have left nothing of it.
        for (int64_t at : walker.Between((day - 1) * kDay, (day + 2) * kDay)) {
            if (at > from && at < until) return Told(what, "left out", at);
        }
    }
    return "";
}

// ---- at random ---------------------------------------------------------------------------------

const Zone& ZoneOf(const std::string& name) {
    static std::map<std::string, Zone> zones;
    auto found = zones.find(name);
    if (found != zones.end()) return found->second;
    std::ifstream file("/usr/share/zoneinfo/" + name, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    auto zone = Zone::Parse(name, bytes);
    EXPECT_TRUE(zone.has_value()) << name;
    return zones.emplace(name, *zone).first->second;
}

constexpr std::array kZones = {
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "Europe/Dublin",
    "America/New_York",
    "America/Los_Angeles",
    "America/St_Johns",
    "America/Sao_Paulo",
    "America/Havana",
    "America/Santiago",
    "America/Asuncion",
    "Australia/Lord_Howe",
    "Australia/Sydney",
    "Asia/Kathmandu",
    "Asia/Tehran",
    "Asia/Gaza",
    "Asia/Beirut",
    "Asia/Pyongyang",
    "Africa/Casablanca",
    "Africa/Cairo",
    "Pacific/Apia",
    "Pacific/Chatham",
    "Pacific/Norfolk",
    "Antarctica/Troll"};

std::string RandomField(base::Random& random, int low, int high) {
    auto number = [&] {
        return std::to_string(
            low + static_cast<int>(random.Below(static_cast<std::uint64_t>(high - low) + 1))
        );
    };
    auto step = [&](int most) {
        return std::to_string(1 + random.Below(static_cast<std::uint64_t>(most)));
    };
    switch (random.Below(8)) {
        case 0:
            return number();
        case 1:
            return number() + "," + number();
        case 2:
            return number() + "-" + number();
        case 3:
            return "*/" + step(std::min(12, high - low));
        case 4:
            return number() + "-" + number() + "/" + step(5);
        case 5:
            return number() + "/" + step(5) + "," + number();
        default:
            return "*";
    }
}

std::string OneOf(base::Random& random, const std::vector<std::string>& words) {
    return words[random.Below(words.size())];
}

std::string RandomCron(base::Random& random, bool with_seconds) {
    std::string day = RandomField(random, 1, 31), weekday = RandomField(random, 0, 6);
    if (random.Below(8) == 0) {
        day = OneOf(random, {"L", "LW", "L-3", "1W", "15W", "30W", "31W", "?"});
    }
    if (random.Below(8) == 0) {
        weekday = OneOf(random, {"FRI#2", "7#5", "MONL", "0L", "?", "SAT-TUE", "7", "5-7"});
    }
    std::string seconds = with_seconds ? RandomField(random, 0, 59) + " " : "";
    return seconds + RandomField(random, 0, 59) + " " + RandomField(random, 0, 23) + " " + day +
           " " + RandomField(random, 1, 12) + " " + weekday;
}

// The changes of clocks in a year: often two, sometimes none, four in Morocco.
std::vector<int64_t> ChangesIn(const Zone& zone, int in) {
    std::vector<int64_t> changes;
    Instant at = sys_days{year{in} / 1 / 1}, end = sys_days{year{in + 1} / 1 / 1};
    for (at = zone.At(at).end; at < end; at = zone.At(at).end) {
        changes.push_back(Count(at));
        if (zone.At(at).end <= at) break;
    }
    return changes;
}

struct Compared {
    int expressions = 0;
    int changes = 0;
    int days = 0;
    std::string first;  // disagreement
};

Compared Compare(const NextOf& next, int expressions) {
    base::SeededRandom random(20261117);
    Compared all;
    while (all.expressions < expressions && all.first.empty()) {
        Case what;
        what.with_seconds = random.Below(20) == 0;
        what.text = RandomCron(random, what.with_seconds);
        what.zone = &ZoneOf(kZones[random.Below(kZones.size())]);
        what.policy = {
            static_cast<GapPolicy>(random.Below(2)), static_cast<FoldPolicy>(random.Below(3))};
        auto cron = Cron::Parse(what.text);
        if (!cron) {
            EXPECT_NE(cron.error().message.find("never happens"), std::string::npos) << what.text;
            continue;
        }
        ++all.expressions;
        const int in = 1995 + static_cast<int>(random.Below(65));
        const int64_t around = what.with_seconds ? 65 * kMinute : 5 * kHour;
        for (int64_t change : ChangesIn(*what.zone, in)) {
            ++all.changes;
            change -= change % kMinute;
            all.first = DisagreementNear(next, *cron, what, change - around, change + around);
            if (!all.first.empty()) return all;
        }
        int64_t anywhere = Count(sys_days{year{in} / 1 / 1}) +
                           static_cast<int64_t>(random.Below(365 * 24 * 60)) * kMinute;
        all.first = DisagreementNear(next, *cron, what, anywhere, anywhere + around);
        if (all.first.empty() && !what.with_seconds) {
            all.first = DisagreementFar(next, *cron, what, anywhere, all.days);
        }
    }
    return all;
}

TEST(Occurrences, OfRandomExpressionsAreThoseOfAWalkerAndNoneIsLeftOut) {
    Compared all = Compare(OurNext, 10'000);
    EXPECT_EQ(all.first, "");
    EXPECT_EQ(all.expressions, 10'000);
    EXPECT_GT(all.changes, 8'000);
    EXPECT_GT(all.days, 100'000);
}

// The walker must be able to fail.
TEST(Walkers, FindWhatIsLeftOutNowAndThen) {
    int asked = 0;
    Compared all = Compare(
        [&](const Cron& cron, const Case& what, Instant after) {
            auto found = OurNext(cron, what, after);
            return found && ++asked % 500 == 0 ? OurNext(cron, what, *found) : found;
        },
        10'000
    );
    EXPECT_NE(all.first.find("left out"), std::string::npos) << all.first;
    EXPECT_LT(all.expressions, 1'000);
}

TEST(Walkers, FindClockChangesThatAreNotAsDeclared) {
    for (bool gap : {true, false}) {
        Compared all = Compare(
            [&](const Cron& cron, const Case& what, Instant after) {
                Case other = what;
                if (gap) other.policy.gap = GapPolicy::kEndOfGap;
                if (!gap) other.policy.fold = FoldPolicy::kFirst;
                return OurNext(cron, other, after);
            },
            10'000
        );
        EXPECT_NE(all.first, "");
        EXPECT_LT(all.expressions, 2'000);
    }
}

}  // namespace
}  // namespace stint::model
