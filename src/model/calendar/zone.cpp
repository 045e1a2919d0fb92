#include "model/calendar/zone.h"

#include <algorithm>
#include <charconv>

#include "base/result.h"
#include "base/text.h"

namespace stint::model {

using base::MakeError;
using std::chrono::local_days;

namespace {

constexpr std::size_t kNameMax = 64;
constexpr std::size_t kFileMax = 1 << 20;
constexpr Instant kBeginning{Seconds{-(std::int64_t{1} << 40)}};
constexpr Instant kForever{Seconds{std::int64_t{1} << 40}};

Error Damaged(std::string_view name, std::string_view what) {
    return MakeError(
        Code::kInvalid, "the file of time zone {} is damaged ({}); reinstall tzdata", name, what
    );
}

}  // namespace

Result<void> CheckZoneName(std::string_view name) {
    bool plain = !name.empty() && name.size() <= kNameMax && name.front() != '/' &&
                 name.find("..") == std::string_view::npos;
    for (char c : name) {
        plain = plain && (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
                          c == '+' || c == '-' || c == '/');
    }
    if (plain) return {};
    return MakeError(
        Code::kInvalid,
        "time zone {} is not a name like Europe/Berlin, America/New_York or UTC",
        base::Quoted(name)
    );
}

// ---- the rule at the end of the file: "CET-1CEST,M3.5.0,M10.5.0/3" ----

class Zone::RuleReader {
public:
    explicit RuleReader(std::string_view text) : rest_(text) {}

    std::optional<Rule> Read() {
        Rule rule;
        if (!ReadName(rule.standard.abbreviation) || !ReadTime(rule.standard.offset)) return {};
        rule.standard.offset = -rule.standard.offset;  // written westwards
        if (rest_.empty()) return rule;
        Kind summer;
        if (!ReadName(summer.abbreviation)) return {};
        summer.offset = rule.standard.offset + std::chrono::hours{1};
        if (!rest_.empty() && rest_.front() != ',') {
            if (!ReadTime(summer.offset)) return {};
            summer.offset = -summer.offset;
        }
        rule.summer = summer;
        if (!ReadDate(rule.summer_begins) || !ReadDate(rule.summer_ends) || !rest_.empty())
            return {};
        return rule;
    }

private:
    bool Take(char c) {
        if (rest_.empty() || rest_.front() != c) return false;
        rest_.remove_prefix(1);
        return true;
    }
    bool ReadNumber(int& number, int most) {
        auto [end, failed] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
        if (failed != std::errc{} || number < 0 || number > most) return false;
        rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
        return true;
    }
    bool ReadName(std::string& name) {
        std::size_t length = 0;
        if (Take('<')) {
            length = rest_.find('>');
            if (length == std::string_view::npos) return false;
            name = rest_.substr(0, length);
            rest_.remove_prefix(length + 1);
        } else {
            while (length < rest_.size() && std::isalpha(static_cast<unsigned char>(rest_[length])))
                ++length;
            name = rest_.substr(0, length);
            rest_.remove_prefix(length);
        }
        return name.size() >= 3;
    }
    bool ReadTime(Seconds& time) {
        bool negative = Take('-');
        if (!negative) Take('+');
        int hours = 0, minutes = 0, rest = 0;
        if (!ReadNumber(hours, 167)) return false;
        if (Take(':') && !ReadNumber(minutes, 59)) return false;
        if (Take(':') && !ReadNumber(rest, 59)) return false;
        time = std::chrono::hours{hours} + std::chrono::minutes{minutes} + Seconds{rest};
        if (negative) time = -time;
        return true;
    }
    bool ReadDate(RuleDate& date) {
        if (!Take(',')) return false;
        if (Take('M')) {
            date.form = RuleDate::Form::kMonthWeekDay;
            if (!ReadNumber(date.month, 12) || !Take('.') || !ReadNumber(date.week, 5) ||
                !Take('.') || !ReadNumber(date.day, 6) || date.month == 0 || date.week == 0) {
                return false;
            }
        } else {
            date.form = Take('J') ? RuleDate::Form::kJulian : RuleDate::Form::kDayOfYear;
            if (!ReadNumber(date.day, 365)) return false;
        }
        date.time = std::chrono::hours{2};
        return !Take('/') || ReadTime(date.time);
    }

    std::string_view rest_;
};

Local Zone::RuleDate::In(int number) const {
    using namespace std::chrono;
    year y{number};
    local_days first = local_days{y / January / 1};
    switch (form) {
        case Form::kJulian:  // 1 … 365, never 29 February
            return first + days{day - 1 + (y.is_leap() && day >= 60 ? 1 : 0)} + time;
        case Form::kDayOfYear:
            return first + days{day} + time;
        case Form::kMonthWeekDay:
            break;
    }
    auto m = std::chrono::month{static_cast<unsigned>(month)};
    auto wd = weekday{static_cast<unsigned>(day)};
    local_days at = week == 5 ? local_days{y / m / wd[last]}
                              : local_days{y / m / wd[static_cast<unsigned>(week)]};
    return at + time;
}

// ---- the file ----

class Zone::FileReader {
public:
    FileReader(std::string name, std::string_view file) : rest_(file) {
        zone_.name_ = std::move(name);
    }

    Result<Zone> Read() {
        zone_.kinds_.clear();
        if (rest_.size() > kFileMax) return Damaged(zone_.name_, "too long");
        Counts counts;
        if (!ReadHeader(counts)) return Damaged(zone_.name_, "no TZif header");
        if (version_ < '2') return Damaged(zone_.name_, "an old format without 64-bit times");
        // The first block repeats the second in 32 bits.
        if (!Skip(counts.Size(4)) || !ReadHeader(counts)) return Damaged(zone_.name_, "cut off");
        if (rest_.size() < counts.Size(8)) return Damaged(zone_.name_, "cut off");
        if (!ReadBlock(counts)) return Damaged(zone_.name_, "wrong numbers");
        return ReadFooter();
    }

private:
    struct Counts {
        std::uint32_t isut = 0, isstd = 0, leap = 0, time = 0, type = 0, chars = 0;
        std::size_t Size(std::size_t width) const {
            return time * width + time + type * std::size_t{6} + chars + leap * (width + 4) +
                   isstd + isut;
        }
    };

    std::uint64_t Big(std::string_view bytes) const {
        std::uint64_t number = 0;
        for (char c : bytes) number = number << 8 | static_cast<unsigned char>(c);
        return number;
    }
    std::string_view Take(std::size_t count) {
        std::string_view taken = rest_.substr(0, count);
        rest_.remove_prefix(taken.size());
        return taken;
    }
    bool Skip(std::size_t count) {
        if (rest_.size() < count) return false;
        rest_.remove_prefix(count);
        return true;
    }
    bool ReadHeader(Counts& counts) {
        constexpr std::size_t kHeader = 44;
        if (rest_.size() < kHeader || Take(4) != "TZif") return false;
        version_ = Take(1)[0];
        Take(15);
        for (std::uint32_t* count :
             {&counts.isut,
              &counts.isstd,
              &counts.leap,
              &counts.time,
              &counts.type,
              &counts.chars}) {
            *count = static_cast<std::uint32_t>(Big(Take(4)));
            if (*count > kFileMax) return false;
        }
        return counts.type > 0;
    }
    bool ReadBlock(const Counts& counts) {
        std::string_view times = Take(counts.time * std::size_t{8});
        std::string_view kinds = Take(counts.time);
        std::string_view types = Take(counts.type * std::size_t{6});
        std::string_view names = Take(counts.chars);
        Take(counts.leap * std::size_t{12} + counts.isstd + counts.isut);
        for (std::size_t i = 0; i < counts.type; ++i) {
            auto offset = static_cast<std::int32_t>(Big(types.substr(i * 6, 4)));
            auto at = static_cast<unsigned char>(types[i * 6 + 5]);
            if (at >= names.size() || std::abs(std::int64_t{offset}) > std::int64_t{26} * 3600)
                return false;
            zone_.kinds_.push_back(
                {Seconds{offset}, std::string(names.substr(at, names.find('\0', at) - at))}
            );
        }
        for (std::size_t i = 0; i < counts.time; ++i) {
            auto at = static_cast<std::int64_t>(Big(times.substr(i * 8, 8)));
            auto kind = static_cast<unsigned char>(kinds[i]);
            Instant instant = std::clamp(Instant{Seconds{at}}, kBeginning, kForever);
            bool sorted = zone_.changes_.empty() || zone_.changes_.back().at <= instant;
            if (kind >= zone_.kinds_.size() || !sorted) return false;
            zone_.changes_.push_back({instant, kind});
        }
        return true;
    }
    Result<Zone> ReadFooter() {
        if (rest_.size() < 2 || rest_.front() != '\n' || rest_.back() != '\n') {
            return Damaged(zone_.name_, "no rule at its end");
        }
        std::string_view text = rest_.substr(1, rest_.size() - 2);
        if (text.empty()) return std::move(zone_);
        zone_.rule_ = RuleReader(text).Read();
        if (!zone_.rule_) return Damaged(zone_.name_, "a rule that cannot be read");
        return std::move(zone_);
    }

    Zone zone_;
    std::string_view rest_;
    char version_ = 0;
};

Zone::Zone() : kinds_{{Seconds{0}, "UTC"}} {
}

Result<Zone> Zone::Parse(std::string name, std::string_view file) {
    return FileReader(std::move(name), file).Read();
}

ZonePeriod Zone::At(Instant instant) const {
    auto next = std::upper_bound(
        changes_.begin(),
        changes_.end(),
        instant,
        [](Instant sought, const Change& change) { return sought < change.at; }
    );
    if (next == changes_.end() && rule_) return ByRule(instant);
    const Kind& kind = kinds_[next == changes_.begin() ? 0 : std::prev(next)->kind];
    return {
        next == changes_.begin() ? kBeginning : std::prev(next)->at,
        next == changes_.end() ? kForever : next->at,
        kind.offset,
        kind.abbreviation};
}

ZonePeriod Zone::ByRule(Instant instant) const {
    const Kind& standard = rule_->standard;
    Instant first = changes_.empty() ? kBeginning : changes_.back().at;
    if (!rule_->summer) return {first, kForever, standard.offset, standard.abbreviation};
    const Kind& summer = *rule_->summer;
    // The changes of the year before, this one and the next surround any instant of this year.
    using namespace std::chrono;
    int year = static_cast<int>(year_month_day{floor<days>(instant)}.year());
    ZonePeriod period{first, kForever, standard.offset, standard.abbreviation};
    for (int y = year - 1; y <= year + 1; ++y) {
        Instant begins{rule_->summer_begins.In(y).time_since_epoch() - standard.offset};
        Instant ends{rule_->summer_ends.In(y).time_since_epoch() - summer.offset};
        for (bool to_summer : {begins < ends, !(begins < ends)}) {
            Instant at = to_summer ? begins : ends;
            const Kind& kind = to_summer ? summer : standard;
            if (at > instant) {
                period.end = at;
                return period;
            }
            period = {std::max(at, first), kForever, kind.offset, kind.abbreviation};
        }
    }
    return period;
}

}  // namespace stint::model
