#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "model/limits.h"
#include "model/match/expression.h"

namespace stint::model::match {

namespace {

using base::Json;

class OutOfFuel {};

const Json kNull = nullptr;

const Json& Follow(const Json& event, const std::vector<Step>& path) {
    const Json* at = &event;
    for (const Step& step : path) {
        if (const auto* index = std::get_if<std::size_t>(&step)) {
            if (!at->is_array() || *index >= at->size()) return kNull;
            at = &(*at)[*index];
        } else {
            const auto& name = std::get<std::string>(step);
            if (!at->is_object()) return kNull;
            auto member = at->find(name);
            if (member == at->end()) return kNull;
            at = &*member;
        }
    }
    return *at;
}

// -1, 0, 1; exact also between whole numbers of 64 bits and floats. Nothing for a NaN.
std::optional<int> CompareWholeWithFloat(const Json& whole, double number) {
    if (std::isnan(number)) return std::nullopt;
    constexpr double kTwo63 = 9223372036854775808.0;
    if (whole.is_number_unsigned()) {
        auto value = whole.get<std::uint64_t>();
        if (number < 0) return 1;
        if (number >= 2 * kTwo63) return -1;
        auto floor = static_cast<std::uint64_t>(number);
        if (value != floor) return value < floor ? -1 : 1;
        return number > static_cast<double>(floor) ? -1 : 0;
    }
    auto value = whole.get<std::int64_t>();
    if (number < -kTwo63) return 1;
    if (number >= kTwo63) return -1;
    double floor = std::floor(number);
    auto below = static_cast<std::int64_t>(floor);
    if (value != below) return value < below ? -1 : 1;
    return number > floor ? -1 : 0;
}

// The library compares a signed and an unsigned number as if both were signed.
int CompareWholes(const Json& a, const Json& b) {
    auto is_huge = [](const Json& whole) {
        return whole.is_number_unsigned() && whole.get<std::uint64_t>() > INT64_MAX;
    };
    if (is_huge(a) != is_huge(b)) return is_huge(a) ? 1 : -1;
    // Both huge, or both within the signed ones: the bits are in order either way.
    auto x = a.get<std::int64_t>();
    auto y = b.get<std::int64_t>();
    return x < y ? -1 : x > y ? 1 : 0;
}

std::optional<int> CompareNumbers(const Json& a, const Json& b) {
    if (a.is_number_float() && b.is_number_float()) {
        double x = a.get<double>();
        double y = b.get<double>();
        if (std::isnan(x) || std::isnan(y)) return std::nullopt;
        return x < y ? -1 : x > y ? 1 : 0;
    }
    if (b.is_number_float()) return CompareWholeWithFloat(a, b.get<double>());
    if (a.is_number_float()) {
        auto turned = CompareWholeWithFloat(b, a.get<double>());
        if (!turned) return turned;
        return -*turned;
    }
    return CompareWholes(a, b);
}

// Linear also for texts made to be slow to search.
bool Contains(const std::string& text, const std::string& part) {
    if (part.empty()) return true;
    std::vector<std::size_t> border(part.size(), 0);
    for (std::size_t i = 1, k = 0; i < part.size(); ++i) {
        while (k > 0 && part[i] != part[k]) k = border[k - 1];
        if (part[i] == part[k]) ++k;
        border[i] = k;
    }
    std::size_t matched = 0;
    for (char c : text) {
        while (matched > 0 && c != part[matched]) matched = border[matched - 1];
        if (c == part[matched]) ++matched;
        if (matched == part.size()) return true;
    }
    return false;
}

class Evaluator {
public:
    explicit Evaluator(const Json& event) : event_(event) {}

    bool Truth(const Node& node) {
        Burn(1);
        auto truth = [this](const NodePtr& operand) { return Truth(*operand); };
        switch (node.op) {
            case Op::kOr:
                return std::any_of(node.operands.begin(), node.operands.end(), truth);
            case Op::kAnd:
                return std::all_of(node.operands.begin(), node.operands.end(), truth);
            case Op::kNot:
                return !Truth(*node.operands.front());
            case Op::kLiteral:
            case Op::kField: {
                const Json& value = Value(node);
                return value.is_boolean() && value.get<bool>();
            }
            case Op::kIn: {
                const Json& left = Value(*node.operands.front());
                return std::any_of(
                    node.operands.begin() + 1,
                    node.operands.end(),
                    [&](const NodePtr& one) { return Equal(left, one->value); }
                );
            }
            default:
                return Compare(node.op, Value(*node.operands[0]), Value(*node.operands[1]));
        }
    }

private:
    void Burn(std::size_t amount) {
        if (amount > fuel_) throw OutOfFuel{};
        fuel_ -= amount;
    }

    // A condition in parentheses is a value too.
    const Json& Value(const Node& node) {
        static const Json kTrue = true;
        static const Json kFalse = false;
        switch (node.op) {
            case Op::kLiteral:
                return node.value;
            case Op::kField:
                Burn(node.path.size());
                return Follow(event_, node.path);
            default:
                return Truth(node) ? kTrue : kFalse;
        }
    }

    bool Equal(const Json& a, const Json& b) {
        Burn(1);
        if (a.is_number() && b.is_number()) return CompareNumbers(a, b) == 0;
        if (a.type() != b.type()) return false;
        if (!a.is_structured()) return a == b;
        // Two fields may be whole trees.
        Burn(a.size());
        if (a.size() != b.size()) return false;
        for (auto x = a.begin(), y = b.begin(); x != a.end(); ++x, ++y) {
            if (a.is_object() && x.key() != y.key()) return false;
            if (!Equal(*x, *y)) return false;
        }
        return true;
    }

    bool Compare(Op op, const Json& a, const Json& b) {
        switch (op) {
            case Op::kEqual:
                return Equal(a, b);
            case Op::kNotEqual:
                return !Equal(a, b);
            case Op::kStartsWith:
            case Op::kEndsWith:
            case Op::kContains:
                return Within(op, a, b);
            default:
                return Ordered(op, a, b);
        }
    }

    bool Within(Op op, const Json& whole, const Json& part) {
        if (op == Op::kContains && whole.is_array()) {
            return std::any_of(whole.begin(), whole.end(), [&](const Json& one) {
                return Equal(one, part);
            });
        }
        if (!whole.is_string() || !part.is_string()) return false;
        const auto& text = whole.get_ref<const std::string&>();
        const auto& sought = part.get_ref<const std::string&>();
        if (op == Op::kStartsWith) return text.starts_with(sought);
        if (op == Op::kEndsWith) return text.ends_with(sought);
        Burn((text.size() + sought.size()) / 1024);
        return Contains(text, sought);
    }

    static bool Ordered(Op op, const Json& a, const Json& b) {
        std::optional<int> order;
        if (a.is_number() && b.is_number()) {
            order = CompareNumbers(a, b);
        } else if (a.is_string() && b.is_string()) {
            order = a.get_ref<const std::string&>().compare(b.get_ref<const std::string&>());
        }
        if (!order) return false;
        if (op == Op::kLess) return *order < 0;
        if (op == Op::kLessEqual) return *order <= 0;
        if (op == Op::kGreater) return *order > 0;
        return *order >= 0;
    }

    const Json& event_;
    std::size_t fuel_ = limits::kMatchFuel;
};

bool SameTree(const Node& a, const Node& b) {
    // A whole number and a float that are equal are still two spellings.
    return a.op == b.op && a.value.type() == b.value.type() && a.value == b.value &&
           a.path == b.path &&
           std::equal(
               a.operands.begin(),
               a.operands.end(),
               b.operands.begin(),
               b.operands.end(),
               [](const NodePtr& x, const NodePtr& y) { return SameTree(*x, *y); }
           );
}

}  // namespace

const Json& Path::In(const Json& event) const {
    return Follow(event, steps_);
}

Result<bool> Expression::Matches(const Json& event) const {
    try {
        return Evaluator(event).Truth(*root_);
    } catch (const OutOfFuel&) {
        return base::MakeError(
            Code::kLimit,
            "needs more than {} steps on this event; compare smaller fields",
            limits::kMatchFuel
        );
    }
}

bool operator==(const Expression& a, const Expression& b) {
    return SameTree(*a.root_, *b.root_);
}

}  // namespace stint::model::match
