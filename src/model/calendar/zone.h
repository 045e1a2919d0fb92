// Time zones, from the bytes of a TZif file (RFC 8536). The rule at the file's end is read too: a
// zone is right for as long as its rules stand, not only up to the last transition in the table.
#pragma once

#include <stint/result.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::model {

using Seconds = std::chrono::seconds;
using Instant = std::chrono::sys_seconds;
using Local = std::chrono::local_seconds;

// What clocks in a zone show from `begin` to just before `end`.
struct ZonePeriod {
    Instant begin, end;
    Seconds offset{};  // local time = instant + offset
    std::string abbreviation;

    Local ToLocal(Instant instant) const { return Local{instant.time_since_epoch() + offset}; }
    Instant ToInstant(Local local) const { return Instant{local.time_since_epoch() - offset}; }
};

class Zone {
public:
    // UTC, which needs no file.
    Zone();
    static Result<Zone> Parse(std::string name, std::string_view file);

    const std::string& name() const { return name_; }
    ZonePeriod At(Instant instant) const;

private:
    struct Kind {
        Seconds offset{};
        std::string abbreviation;
    };
    struct Change {
        Instant at;
        std::size_t kind = 0;
    };
    // "the second Sunday of March, 2 hours after midnight": when a rule's clocks change.
    struct RuleDate {
        enum class Form : std::uint8_t { kJulian, kDayOfYear, kMonthWeekDay };
        Form form = Form::kMonthWeekDay;
        int day = 0, week = 0, month = 0;
        Seconds time{};

        Local In(int year) const;
    };
    struct Rule {
        Kind standard;
        std::optional<Kind> summer;
        RuleDate summer_begins, summer_ends;
    };
    class FileReader;
    class RuleReader;

    ZonePeriod ByRule(Instant instant) const;

    std::string name_ = "UTC";
    std::vector<Kind> kinds_;
    std::vector<Change> changes_;  // by time
    std::optional<Rule> rule_;     // after the last change
};

// "Europe/Berlin": letters, digits and "_+-/", no "..", so that it can be a path below a directory.
Result<void> CheckZoneName(std::string_view name);

}  // namespace stint::model
