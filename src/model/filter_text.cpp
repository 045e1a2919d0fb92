#include "model/filter_text.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/json.h"
#include "base/nearest.h"
#include "base/result.h"
#include "model/time_text.h"

namespace stint::model {

namespace {

using base::MakeError;
using Op = InputMatch::Op;

constexpr std::array<std::string_view, 10> kFields = {
    "state",
    "type",
    "queue",
    "tag",
    "tenant",
    "parent",
    "age",
    "created",
    "finished",
    "input.PATH"};

struct Value {
    std::string text;
    bool quoted = false;
};

struct Term {
    std::string_view text;  // as written
    std::size_t number = 0;
    std::size_t column = 0;
    std::string_view field;
    Op op = Op::kEqual;
    std::vector<Value> values;
};

Error TermError(const Term& term, std::string_view what) {
    return MakeError(
        Code::kInvalid,
        "filter term {} (\"{}\", column {}): {}",
        term.number,
        term.text,
        term.column,
        what
    );
}

bool IsSpace(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// The end of the term that begins at `start`: the next space outside quotes.
std::size_t TermEnd(std::string_view text, std::size_t start) {
    bool quoted = false;
    std::size_t i = start;
    for (; i < text.size(); ++i) {
        if (text[i] == '\\' && quoted && i + 1 < text.size()) {
            ++i;
        } else if (text[i] == '"') {
            quoted = !quoted;
        } else if (IsSpace(text[i]) && !quoted) {
            break;
        }
    }
    return i;
}

// Takes the operator off the front of `rest`.
std::optional<Op> TakeOp(std::string_view& rest) {
    constexpr std::array<std::pair<std::string_view, Op>, 7> kOps = {{
        {"!=", Op::kNotEqual},
        {"<=", Op::kLessEqual},
        {">=", Op::kGreaterEqual},
        {":", Op::kEqual},
        {"=", Op::kEqual},
        {"<", Op::kLess},
        {">", Op::kGreater},
    }};
    for (auto& [spelling, op] : kOps) {
        if (rest.starts_with(spelling)) {
            rest.remove_prefix(spelling.size());
            return op;
        }
    }
    return std::nullopt;
}

// Reads one value up to a comma or the end. False: a quote is not closed or ends inside a value.
bool TakeValue(std::string_view& rest, Value& value) {
    if (rest.empty() || rest[0] != '"') {
        std::size_t end = std::min(rest.find(','), rest.size());
        value.text = rest.substr(0, end);
        rest.remove_prefix(end);
        return value.text.find('"') == std::string::npos;
    }
    value.quoted = true;
    std::size_t i = 1;
    for (; i < rest.size() && rest[i] != '"'; ++i) {
        if (rest[i] == '\\' && i + 1 < rest.size()) ++i;
        value.text += rest[i];
    }
    if (i >= rest.size()) return false;
    rest.remove_prefix(i + 1);
    return rest.empty() || rest[0] == ',';
}

Result<Term> ParseTerm(std::string_view text, std::size_t number, std::size_t column) {
    Term term{.text = text, .number = number, .column = column, .field = {}, .values = {}};
    if (text[0] == '-' || text[0] == '!') {
        return TermError(term, "terms cannot be negated; for input members there is !=");
    }
    std::size_t end = text.find_first_of(":=<>!\"");
    if (end == std::string_view::npos || text[end] == '"') {
        return TermError(term, "is not FIELD:VALUE; for example state:dead");
    }
    term.field = text.substr(0, end);
    std::string_view rest = text.substr(end);
    auto op = TakeOp(rest);
    if (!op) return TermError(term, "has no operator; one of : = != < <= > >=");
    term.op = *op;
    while (true) {
        Value value;
        if (!TakeValue(rest, value)) return TermError(term, "a quote is not closed or misplaced");
        if (value.text.empty() && !value.quoted) return TermError(term, "a value is missing");
        term.values.push_back(std::move(value));
        if (rest.empty()) return term;
        rest.remove_prefix(1);  // the comma
    }
}

Result<void> WantEquality(const Term& term) {
    if (term.op == Op::kEqual) return {};
    return TermError(term, fmt::format("{} is compared with : only", term.field));
}

Result<void> WantOneValue(const Term& term) {
    if (term.values.size() == 1) return {};
    return TermError(term, fmt::format("{} takes one value", term.field));
}

Result<void> ApplyStates(const Term& term, TaskFilter& filter) {
    if (auto ok = WantEquality(term); !ok) return ok;
    if (!filter.states.empty()) {
        return TermError(term, "state is given twice; several states: state:dead,error");
    }
    for (const Value& value : term.values) {
        auto state = StateNamed(value.text);
        if (!state) {
            std::array<std::string_view, kStateCount> names;
            for (int i = 0; i < kStateCount; ++i) names[i] = StateName(static_cast<State>(i));
            auto near = base::Nearest(value.text, names);
            std::string all;
            for (auto name : names) all += fmt::format("{}{}", all.empty() ? "" : ", ", name);
            return TermError(
                term,
                near.empty() ? fmt::format("no state \"{}\"; the states are {}", value.text, all)
                             : fmt::format(
                                   "no state \"{}\"; did you mean \"{}\"? The states are {}",
                                   value.text,
                                   near,
                                   all
                               )
            );
        }
        filter.states.push_back(*state);
    }
    return {};
}

Result<void> ApplyNames(const Term& term, std::vector<std::string>& names) {
    if (auto ok = WantEquality(term); !ok) return ok;
    if (!names.empty()) {
        return TermError(
            term, fmt::format("{0} is given twice; several values: {0}:a,b", term.field)
        );
    }
    for (const Value& value : term.values) names.push_back(value.text);
    return {};
}

Result<void> ApplyTags(const Term& term, TaskFilter& filter) {
    if (auto ok = WantEquality(term); !ok) return ok;
    if (term.values.size() > 1) {
        return TermError(term, "tags cannot be alternatives; tag:a tag:b asks for both");
    }
    filter.tags.push_back(term.values[0].text);
    return {};
}

template <class IdType>
Result<IdType> NumberOf(const Term& term) {
    if (auto ok = WantEquality(term); !ok) return ok.error();
    if (auto ok = WantOneValue(term); !ok) return ok.error();
    auto id = IdType::Parse(term.values[0].text);
    if (!id) return TermError(term, fmt::format("{} is a positive number", term.field));
    return *id;
}

// Narrows [from, to) by `op instant`. Instants are whole microseconds.
Result<void> Narrow(
    const Term& term, Op op, Time instant, std::optional<Time>& from, std::optional<Time>& to
) {
    constexpr std::chrono::microseconds kOne{1};
    auto raise = [&](Time time) { from = from ? std::max(*from, time) : time; };
    auto lower = [&](Time time) { to = to ? std::min(*to, time) : time; };
    switch (op) {
        case Op::kGreater:
            raise(instant + kOne);
            return {};
        case Op::kGreaterEqual:
            raise(instant);
            return {};
        case Op::kLess:
            lower(instant);
            return {};
        case Op::kLessEqual:
            lower(instant + kOne);
            return {};
        case Op::kEqual:
        case Op::kNotEqual:
            break;
    }
    return TermError(term, fmt::format("{} is compared with < <= > >= only", term.field));
}

Result<void> ApplyAge(const Term& term, Time now, TaskFilter& filter) {
    if (auto ok = WantOneValue(term); !ok) return ok;
    auto age = ParseDuration(term.values[0].text);
    if (!age) return TermError(term, age.error().message);
    // Older means created earlier.
    Op turned = term.op;
    if (term.op == Op::kGreater) turned = Op::kLess;
    if (term.op == Op::kGreaterEqual) turned = Op::kLessEqual;
    if (term.op == Op::kLess) turned = Op::kGreater;
    if (term.op == Op::kLessEqual) turned = Op::kGreaterEqual;
    return Narrow(term, turned, now - *age, filter.created_from, filter.created_to);
}

Result<void> ApplyInstant(
    const Term& term, Time now, std::optional<Time>& from, std::optional<Time>& to
) {
    if (auto ok = WantOneValue(term); !ok) return ok;
    auto instant = ParseTime(term.values[0].text, now);
    if (!instant) return TermError(term, instant.error().message);
    return Narrow(term, term.op, *instant, from, to);
}

Result<void> ApplyInput(const Term& term, TaskFilter& filter) {
    std::string_view path = term.field.substr(std::string_view("input.").size());
    if (path.empty() || path.front() == '.' || path.back() == '.' ||
        path.find("..") != std::string_view::npos) {
        return TermError(term, "input needs a path of member names: input.user.id:42");
    }
    if (auto ok = WantOneValue(term); !ok) return ok;
    const Value& value = term.values[0];
    std::string scalar;
    auto parsed = base::ReadJson(value.text);
    if (!value.quoted && !parsed.is_discarded() && parsed.is_primitive()) {
        scalar = value.text;
    } else {
        scalar = base::JsonText(base::Json(value.text));
    }
    filter.input.push_back({.path = std::string(path), .op = term.op, .value = scalar});
    return {};
}

Error UnknownField(const Term& term) {
    if (term.field == "id") return TermError(term, "tasks are found by id with: stint task get ID");
    auto near = base::Nearest(term.field, kFields);
    std::string all;
    for (auto name : kFields) all += fmt::format("{}{}", all.empty() ? "" : ", ", name);
    std::string meant = near.empty() ? "" : fmt::format("did you mean \"{}\"? ", near);
    return TermError(
        term, fmt::format("unknown field \"{}\"; {}The fields are {}", term.field, meant, all)
    );
}

Result<void> Apply(const Term& term, Time now, TaskFilter& filter) {
    if (term.field == "state") return ApplyStates(term, filter);
    if (term.field == "type") return ApplyNames(term, filter.types);
    if (term.field == "queue") return ApplyNames(term, filter.queues);
    if (term.field == "tag") return ApplyTags(term, filter);
    if (term.field == "age") return ApplyAge(term, now, filter);
    if (term.field == "created") {
        return ApplyInstant(term, now, filter.created_from, filter.created_to);
    }
    if (term.field == "finished") {
        return ApplyInstant(term, now, filter.finished_from, filter.finished_to);
    }
    if (term.field == "tenant") {
        auto tenant = NumberOf<TenantId>(term);
        if (!tenant) return tenant.error();
        filter.tenant = *tenant;
        return {};
    }
    if (term.field == "parent") {
        auto parent = NumberOf<TaskId>(term);
        if (!parent) return parent.error();
        filter.parent = *parent;
        return {};
    }
    if (term.field.starts_with("input.")) return ApplyInput(term, filter);
    return UnknownField(term);
}

}  // namespace

Result<TaskFilter> ParseFilter(std::string_view text, Time now) {
    TaskFilter filter;
    std::size_t number = 0;
    std::size_t at = 0;
    while (true) {
        while (at < text.size() && IsSpace(text[at])) ++at;
        if (at == text.size()) break;
        std::size_t end = TermEnd(text, at);
        auto term = ParseTerm(text.substr(at, end - at), ++number, at + 1);
        if (!term) return term.error();
        if (auto applied = Apply(*term, now, filter); !applied) return applied.error();
        at = end;
    }
    if (auto valid = Validate(filter); !valid) return valid.error();
    return filter;
}

}  // namespace stint::model
