#include "model/calendar/cron.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/result.h"
#include "base/text.h"

namespace stint::model {

using base::MakeError;
using std::chrono::days;
using std::chrono::floor;
using std::chrono::local_days;
using std::chrono::local_seconds;
using std::chrono::seconds;
using std::chrono::weekday;
using std::chrono::year;
using std::chrono::year_month_day;

namespace {

constexpr std::size_t kTextMax = 200;
// After 400 years the calendar repeats, weekdays included.
constexpr int kCycleDays = 146'097;

constexpr std::array<std::string_view, 12> kMonths = {
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
constexpr std::array<std::string_view, 7> kWeekdays = {
    "SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"};

constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kNamed = {{
    {"@yearly", "0 0 1 1 *"},
    {"@annually", "0 0 1 1 *"},
    {"@monthly", "0 0 1 * *"},
    {"@weekly", "0 0 * * 0"},
    {"@daily", "0 0 * * *"},
    {"@midnight", "0 0 * * *"},
    {"@hourly", "0 * * * *"},
    {"@minutely", "* * * * *"},
}};

struct Field {
    std::string_view name;
    int low, high;
};
constexpr Field kSecond{"second", 0, 59}, kMinute{"minute", 0, 59}, kHour{"hour", 0, 23},
    kDay{"day of the month", 1, 31}, kMonth{"month", 1, 12}, kWeekday{"weekday", 0, 7};

std::vector<std::string_view> Words(std::string_view text) {
    std::vector<std::string_view> words;
    std::size_t at = 0;
    while ((at = text.find_first_not_of(" \t", at)) != std::string_view::npos) {
        std::size_t end = std::min(text.find_first_of(" \t", at), text.size());
        words.push_back(text.substr(at, end - at));
        at = end;
    }
    return words;
}

unsigned DaysIn(const year_month_day& date) {
    return static_cast<unsigned>((date.year() / date.month() / std::chrono::last).day());
}

// The weekday nearest to that day, within the month.
unsigned NearestWeekday(const year_month_day& date, unsigned day) {
    weekday on{local_days{date.year() / date.month() / static_cast<int>(day)}};
    unsigned last = DaysIn(date);
    if (on == std::chrono::Saturday) return day > 1 ? day - 1 : day + 2;
    if (on == std::chrono::Sunday) return day < last ? day + 1 : day - 2;
    return day;
}

}  // namespace

// ---- reading ----

class Cron::Parser {
public:
    explicit Parser(Cron& cron) : cron_(cron) {}

    Result<void> Read(const std::vector<std::string_view>& words) {
        std::size_t i = 0;
        if (words.size() == 6) {
            if (auto ok = Plain(words[i++], kSecond, cron_.seconds_); !ok) return ok;
        } else {
            cron_.seconds_.set(0);
        }
        if (auto ok = Plain(words[i++], kMinute, cron_.minutes_); !ok) return ok;
        if (auto ok = Plain(words[i++], kHour, cron_.hours_); !ok) return ok;
        if (auto ok = Days(words[i++]); !ok) return ok;
        if (auto ok = Plain(words[i++], kMonth, cron_.months_); !ok) return ok;
        return Weekdays(words[i]);
    }

private:
    struct Range {
        int from = 0, to = 0, step = 1;
    };

    Error Wrong(const Field& field, std::string_view part, std::string_view cure) const {
        return MakeError(Code::kInvalid, "cron: {} {} {}", field.name, base::Quoted(part), cure);
    }

    template <class F>
    Result<void> EachPart(std::string_view word, const Field& field, F read) {
        while (true) {
            std::size_t comma = word.find(',');
            std::string_view part = word.substr(0, comma);
            if (part.empty()) return Wrong(field, word, "has an empty part; remove the comma");
            if (auto ok = read(part); !ok) return ok;
            if (comma == std::string_view::npos) return {};
            word.remove_prefix(comma + 1);
        }
    }

    std::optional<int> Value(std::string_view text, const Field& field) const {
        int number = 0;
        auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
        if (failed == std::errc{} && end == text.data() + text.size() && text.front() != '-') {
            if (number < field.low || number > field.high) return std::nullopt;
            return number;
        }
        auto named = [&](const auto& names, int first) -> std::optional<int> {
            for (std::size_t i = 0; i < names.size(); ++i) {
                if (base::EqualIgnoringCase(text, names[i])) return static_cast<int>(i) + first;
            }
            return std::nullopt;
        };
        if (field.name == kMonth.name) return named(kMonths, 1);
        if (field.name == kWeekday.name) return named(kWeekdays, 0);
        return std::nullopt;
    }

    std::string Allowed(const Field& field) const {
        std::string text = fmt::format("must be {} to {}", field.low, field.high);
        if (field.name == kMonth.name) text += " or JAN to DEC";
        if (field.name == kWeekday.name) text += " or SUN to SAT";
        return text + ", a range a-b, a step a/n, a list, or *";
    }

    Result<Range> ReadRange(std::string_view part, const Field& field) const {
        Range range;
        std::string_view whole = part;
        std::size_t slash = part.find('/');
        if (slash != std::string_view::npos) {
            std::string_view step = part.substr(slash + 1);
            auto [end, failed] =
                std::from_chars(step.data(), step.data() + step.size(), range.step);
            int most = field.name == kWeekday.name ? 7 : field.high - field.low + 1;
            if (failed != std::errc{} || end != step.data() + step.size() || range.step < 1 ||
                range.step > most) {
                return Wrong(field, whole, fmt::format("needs a step of 1 to {}", most));
            }
            part = part.substr(0, slash);
        }
        if (part == "*" || part == "?") {
            range.from = field.low;
            range.to = field.name == kWeekday.name ? 6 : field.high;
            return range;
        }
        std::size_t dash = part.find('-');
        auto from = Value(part.substr(0, dash), field);
        auto to = from;
        if (dash != std::string_view::npos) {
            to = Value(part.substr(dash + 1), field);
        } else if (slash != std::string_view::npos) {
            to = field.name == kWeekday.name ? 6 : field.high;
        }
        if (!from || !to || part.empty()) return Wrong(field, whole, Allowed(field));
        range.from = *from;
        range.to = *to;
        return range;
    }

    template <std::size_t N>
    Result<void> Add(std::string_view part, const Field& field, std::bitset<N>& set) {
        auto range = ReadRange(part, field);
        if (!range) return range.error();
        // A week has seven days, and the seventh is the one before the first.
        bool week = field.name == kWeekday.name;
        int length = week ? 7 : field.high - field.low + 1;
        int span = range->to - range->from;
        if (span < 0) span += length;
        for (int i = 0; i <= span; i += range->step) {
            int value = range->from + i;
            if (week) value %= 7;
            if (value > field.high) value -= length;
            set.set(static_cast<std::size_t>(value));
        }
        return {};
    }

    template <std::size_t N>
    Result<void> Plain(std::string_view word, const Field& field, std::bitset<N>& set) {
        if (word == "?") return Wrong(field, word, "is for days only; use *");
        return EachPart(word, field, [&](std::string_view part) { return Add(part, field, set); });
    }

    Result<void> Days(std::string_view word) {
        cron_.day_given_ = word != "*" && word != "?";
        cron_.day_starred_ = word.front() == '*';
        return EachPart(word, kDay, [&](std::string_view part) { return DayPart(part); });
    }

    Result<void> DayPart(std::string_view part) {
        if (base::EqualIgnoringCase(part, "L")) return cron_.from_last_.set(0), Result<void>{};
        if (base::EqualIgnoringCase(part, "LW")) return cron_.last_weekday_ = true, Result<void>{};
        if (part.size() > 2 && (part.front() == 'L' || part.front() == 'l') && part[1] == '-') {
            auto back = Value(part.substr(2), Field{"day of the month", 1, 30});
            if (!back) return Wrong(kDay, part, "must be L-1 to L-30");
            cron_.from_last_.set(static_cast<std::size_t>(*back));
            return {};
        }
        if (part.size() > 1 && (part.back() == 'W' || part.back() == 'w')) {
            auto day = Value(part.substr(0, part.size() - 1), kDay);
            if (!day) return Wrong(kDay, part, "must be 1W to 31W, or LW");
            cron_.nearest_.set(static_cast<std::size_t>(*day));
            return {};
        }
        return Add(part, kDay, cron_.days_);
    }

    Result<void> Weekdays(std::string_view word) {
        cron_.weekday_given_ = word != "*" && word != "?";
        cron_.weekday_starred_ = word.front() == '*';
        return EachPart(word, kWeekday, [&](std::string_view part) { return WeekdayPart(part); });
    }

    Result<void> WeekdayPart(std::string_view part) {
        std::size_t hash = part.find('#');
        if (hash != std::string_view::npos) {
            auto day = Value(part.substr(0, hash), kWeekday);
            auto which = Value(part.substr(hash + 1), Field{"week", 1, 5});
            if (!day || !which)
                return Wrong(kWeekday, part, "must be like FRI#2: a weekday, #, 1 to 5");
            cron_.nth_.at(static_cast<std::size_t>(*day % 7)).set(static_cast<std::size_t>(*which));
            return {};
        }
        if (part.size() > 1 && (part.back() == 'L' || part.back() == 'l')) {
            auto day = Value(part.substr(0, part.size() - 1), kWeekday);
            if (!day) return Wrong(kWeekday, part, "must be like FRIL: a weekday and L");
            cron_.last_.set(static_cast<std::size_t>(*day % 7));
            return {};
        }
        return Add(part, kWeekday, cron_.weekdays_);
    }

    Cron& cron_;
};

Result<Cron> Cron::Parse(std::string_view text) {
    if (text.size() > kTextMax) {
        return MakeError(
            Code::kLimit, "cron: {} characters; at most {} are read", text.size(), kTextMax
        );
    }
    std::vector<std::string_view> words = Words(text);
    Cron cron;
    cron.text_ = fmt::format("{}", fmt::join(words, " "));
    if (words.size() == 1 && words[0].starts_with('@')) {
        auto named = std::find_if(kNamed.begin(), kNamed.end(), [&](const auto& one) {
            return base::EqualIgnoringCase(words[0], one.first);
        });
        if (named == kNamed.end()) {
            return MakeError(
                Code::kInvalid,
                "cron: {} is not known; there are @yearly, @monthly, @weekly, @daily, @hourly, "
                "@minutely",
                base::Quoted(words[0])
            );
        }
        words = Words(named->second);
    }
    if (words.size() != 5 && words.size() != 6) {
        return MakeError(
            Code::kInvalid,
            "cron: {} has {} fields; it needs five (minute hour day month weekday), or six "
            "with seconds first",
            base::Quoted(cron.text_),
            words.size()
        );
    }
    if (auto ok = Parser(cron).Read(words); !ok) return ok.error();
    local_days first{year{2000} / std::chrono::January / 1};
    for (int i = 0; i < kCycleDays; ++i) {
        if (cron.MatchesDay(first + days{i})) return cron;
    }
    return MakeError(
        Code::kInvalid,
        "cron: \"{}\" never happens: no month of those given has such a day",
        cron.text_
    );
}

// ---- matching ----

bool Cron::MatchesDayOfMonth(const year_month_day& date) const {
    auto day = static_cast<unsigned>(date.day());
    unsigned last = DaysIn(date);
    if (days_[day]) return true;
    if (last - day < from_last_.size() && from_last_[last - day]) return true;
    if (last_weekday_ && day == NearestWeekday(date, last)) return true;
    if (nearest_.none()) return false;
    for (unsigned wanted = 1; wanted <= last; ++wanted) {
        if (nearest_[wanted] && NearestWeekday(date, wanted) == day) return true;
    }
    return false;
}

bool Cron::MatchesWeekday(const year_month_day& date, weekday on) const {
    unsigned index = on.c_encoding();
    auto day = static_cast<unsigned>(date.day());
    if (weekdays_[index]) return true;
    if (last_[index] && day + 7 > DaysIn(date)) return true;
    return nth_[index][(day - 1) / 7 + 1];
}

bool Cron::MatchesDay(local_days day) const {
    year_month_day date{day};
    if (!months_[static_cast<unsigned>(date.month())]) return false;
    bool by_day = !day_given_ || MatchesDayOfMonth(date);
    bool by_weekday = !weekday_given_ || MatchesWeekday(date, weekday{day});
    bool either = day_given_ && weekday_given_ && !day_starred_ && !weekday_starred_;
    return either ? by_day || by_weekday : by_day && by_weekday;
}

bool Cron::Matches(local_seconds local) const {
    local_days day = floor<days>(local);
    auto time = (local - day).count();
    return seconds_[static_cast<std::size_t>(time % 60)] &&
           minutes_[static_cast<std::size_t>(time / 60 % 60)] &&
           hours_[static_cast<std::size_t>(time / 3600)] && MatchesDay(day);
}

namespace {

// The first set place at or after `from`.
template <std::size_t N>
std::optional<int> FirstFrom(const std::bitset<N>& set, int from) {
    for (int i = from; i < static_cast<int>(N); ++i) {
        if (set[static_cast<std::size_t>(i)]) return i;
    }
    return std::nullopt;
}

}  // namespace

std::optional<seconds> Cron::NextInDay(seconds from) const {
    auto at = from.count();
    int hour = static_cast<int>(at / 3600), minute = static_cast<int>(at / 60 % 60),
        second = static_cast<int>(at % 60);
    auto as_time = [](int h, int m, int s) { return seconds{(h * 60 + m) * 60 + s}; };
    int first_minute = *FirstFrom(minutes_, 0), first_second = *FirstFrom(seconds_, 0);
    if (hour < 24 && hours_[static_cast<std::size_t>(hour)]) {
        if (minutes_[static_cast<std::size_t>(minute)]) {
            if (auto s = FirstFrom(seconds_, second)) return as_time(hour, minute, *s);
        }
        if (auto m = FirstFrom(minutes_, minute + 1)) return as_time(hour, *m, first_second);
    }
    auto h = FirstFrom(hours_, hour + 1);
    if (!h) return std::nullopt;
    return as_time(*h, first_minute, first_second);
}

std::optional<local_seconds> Cron::Next(local_seconds local) const {
    local += seconds{1};
    local_days day = floor<days>(local);
    seconds from = local - day;
    for (int i = 0; i <= kCycleDays; ++i) {
        if (MatchesDay(day)) {
            if (auto time = NextInDay(from)) return day + *time;
        }
        day += days{1};
        from = seconds{0};
    }
    return std::nullopt;
}

}  // namespace stint::model
