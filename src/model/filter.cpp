// Filters of lists: what is a valid one, and what it means.
#include <algorithm>
#include <compare>
#include <utility>

#include "base/json.h"
#include "base/result.h"
#include "base/text.h"
#include "model/task.h"

namespace stint::model {

using base::Json;
using base::MakeError;
using base::Quoted;

namespace {

constexpr std::size_t kInputMatches = 16;
constexpr std::size_t kPath = 512;

Result<void> CheckPath(std::string_view path) {
    bool member_missing = path.empty() || path.front() == '.' || path.back() == '.' ||
                          path.find("..") != std::string_view::npos;
    bool odd = path.size() > kPath || !base::IsUtf8(path) || base::HasControl(path) ||
               path.find_first_of("\"\\") != std::string_view::npos;
    if (!member_missing && !odd) return {};
    return MakeError(
        Code::kInvalid,
        "input path is {}; give member names joined by dots, without quotes and backslashes, at "
        "most {} bytes",
        Quoted(path),
        kPath
    );
}

Result<void> CheckMatch(const InputMatch& match) {
    if (auto ok = CheckPath(match.path); !ok) return ok;
    auto value = base::ParseJson(match.value, 1);
    if (!value || value->is_structured()) {
        return MakeError(
            Code::kInvalid,
            "input value is {}; give a JSON string, number, boolean or null",
            Quoted(match.value)
        );
    }
    return {};
}

Result<void> CheckCount(std::string_view field, std::size_t count, std::size_t limit) {
    if (count <= limit) return {};
    return MakeError(Code::kLimit, "{} has {} entries; the limit is {}", field, count, limit);
}

Result<void> CheckRange(
    std::string_view field, const std::optional<Time>& from, const std::optional<Time>& to
) {
    if (!from || !to || *from < *to) return {};
    return MakeError(
        Code::kInvalid,
        "{0}_from is {1}, not before {0}_to ({2}); nothing could match",
        field,
        base::Iso8601(*from),
        base::Iso8601(*to)
    );
}

// ---- meaning ----

template <class T>
bool AnyOf(const std::vector<T>& allowed, const T& value) {
    return allowed.empty() || std::find(allowed.begin(), allowed.end(), value) != allowed.end();
}

bool TypeMatches(std::string_view pattern, std::string_view type) {
    if (!pattern.ends_with('*')) return pattern == type;
    return type.starts_with(pattern.substr(0, pattern.size() - 1));
}

bool InRange(
    const std::optional<Time>& time, const std::optional<Time>& from, const std::optional<Time>& to
) {
    if (!from && !to) return true;
    return time && (!from || *time >= *from) && (!to || *time < *to);
}

const Json* Member(const Json& value, std::string_view path) {
    const Json* at = &value;
    while (true) {
        std::size_t dot = path.find('.');
        if (!at->is_object()) return nullptr;
        auto found = at->find(std::string(path.substr(0, dot)));
        if (found == at->end()) return nullptr;
        at = &*found;
        if (dot == std::string_view::npos) return at;
        path.remove_prefix(dot + 1);
    }
}

std::partial_ordering CompareNumbers(const Json& a, const Json& b) {
    auto order = [](auto x, auto y) {
        if (std::cmp_less(x, y)) return std::partial_ordering::less;
        return std::cmp_equal(x, y) ? std::partial_ordering::equivalent
                                    : std::partial_ordering::greater;
    };
    // Doubles only where they must be: whole numbers above 2^53 stay exact.
    if (a.is_number_float() || b.is_number_float()) return a.get<double>() <=> b.get<double>();
    if (a.is_number_unsigned()) {
        auto x = a.get<std::uint64_t>();
        return b.is_number_unsigned() ? order(x, b.get<std::uint64_t>())
                                      : order(x, b.get<std::int64_t>());
    }
    auto x = a.get<std::int64_t>();
    return b.is_number_unsigned() ? order(x, b.get<std::uint64_t>())
                                  : order(x, b.get<std::int64_t>());
}

// Unordered where the two have no order: different types, or types that only know equality.
std::partial_ordering Compare(const Json& a, const Json& b) {
    if (a.is_number() && b.is_number()) return CompareNumbers(a, b);
    if (a.is_string() && b.is_string()) {
        int order = a.get_ref<const std::string&>().compare(b.get_ref<const std::string&>());
        return order <=> 0;
    }
    return a == b ? std::partial_ordering::equivalent : std::partial_ordering::unordered;
}

bool InputMatches(const InputMatch& match, const Json& input) {
    const Json* found = Member(input, match.path);
    if (found == nullptr) return false;
    Json value = base::ReadJson(match.value);
    std::partial_ordering order = Compare(*found, value);
    bool ordered =
        (found->is_number() && value.is_number()) || (found->is_string() && value.is_string());
    switch (match.op) {
        case InputMatch::Op::kEqual:
            return order == 0;
        case InputMatch::Op::kNotEqual:
            return order != 0;
        case InputMatch::Op::kLess:
            return ordered && order < 0;
        case InputMatch::Op::kLessEqual:
            return ordered && order <= 0;
        case InputMatch::Op::kGreater:
            return ordered && order > 0;
        case InputMatch::Op::kGreaterEqual:
            return ordered && order >= 0;
    }
    return false;
}

bool InputMatchesAll(const std::vector<InputMatch>& matches, const std::string& text) {
    if (matches.empty()) return true;
    Json input = base::ReadJson(text);
    return std::all_of(matches.begin(), matches.end(), [&](const InputMatch& match) {
        return InputMatches(match, input);
    });
}

}  // namespace

Result<void> Validate(const TaskFilter& filter) {
    if (auto ok = CheckCount("types", filter.types.size(), limits::kTypesPerWorker); !ok) return ok;
    if (auto ok = CheckCount("queues", filter.queues.size(), limits::kQueuesPerWorker); !ok)
        return ok;
    if (auto ok = CheckCount("tags", filter.tags.size(), limits::kTagsPerTask); !ok) return ok;
    if (auto ok = CheckCount("input", filter.input.size(), kInputMatches); !ok) return ok;
    for (const std::string& type : filter.types) {
        std::size_t star = type.find('*');
        if (type.empty() || (star != std::string::npos && star + 1 != type.size())) {
            return MakeError(
                Code::kInvalid, "type is {}; give a name, or a prefix that ends in *", Quoted(type)
            );
        }
    }
    if (auto ok = CheckRange("created", filter.created_from, filter.created_to); !ok) return ok;
    if (auto ok = CheckRange("finished", filter.finished_from, filter.finished_to); !ok) return ok;
    for (const InputMatch& match : filter.input) {
        if (auto ok = CheckMatch(match); !ok) return ok;
    }
    return {};
}

bool Matches(const TaskFilter& filter, const TaskRecord& task) {
    if (filter.tenant && *filter.tenant != task.tenant) return false;
    if (filter.parent.valid() && filter.parent != task.parent) return false;
    if (!AnyOf(filter.states, task.state) || !AnyOf(filter.queues, task.queue)) return false;
    bool type =
        filter.types.empty() ||
        std::any_of(filter.types.begin(), filter.types.end(), [&](const std::string& pattern) {
            return TypeMatches(pattern, task.type);
        });
    if (!type) return false;
    for (const std::string& tag : filter.tags) {
        if (std::find(task.tags.begin(), task.tags.end(), tag) == task.tags.end()) return false;
    }
    return InRange(task.created_at, filter.created_from, filter.created_to) &&
           InRange(task.finished_at, filter.finished_from, filter.finished_to) &&
           InputMatchesAll(filter.input, task.input);
}

}  // namespace stint::model
