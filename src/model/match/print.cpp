#include <fmt/format.h>

#include "model/match/expression.h"
#include "model/match/lexer.h"

namespace stint::model::match {

namespace {

// How closely an operator binds; a part that binds less than its place asks for is put in
// parentheses.
enum class Binding : std::uint8_t { kOr, kAnd, kNot, kComparison, kOperand };

Binding BindingOf(Op op) {
    switch (op) {
        case Op::kLiteral:
        case Op::kField:
            return Binding::kOperand;
        case Op::kOr:
            return Binding::kOr;
        case Op::kAnd:
            return Binding::kAnd;
        case Op::kNot:
            return Binding::kNot;
        default:
            return Binding::kComparison;
    }
}

std::string_view Symbol(Op op) {
    switch (op) {
        case Op::kEqual:
            return "=";
        case Op::kNotEqual:
            return "!=";
        case Op::kLess:
            return "<";
        case Op::kLessEqual:
            return "<=";
        case Op::kGreater:
            return ">";
        case Op::kGreaterEqual:
            return ">=";
        case Op::kStartsWith:
            return "startsWith";
        case Op::kEndsWith:
            return "endsWith";
        default:
            return "contains";
    }
}

std::string QuotedText(std::string_view text) {
    std::string quoted = "'";
    for (char c : text) {
        if (c == '\'') quoted += '\'';
        quoted += c;
    }
    return quoted + "'";
}

std::string LiteralText(const base::Json& value) {
    if (value.is_string()) return QuotedText(value.get_ref<const std::string&>());
    if (value.is_number_float()) {
        // Shortest text that reads back the same, and a float again.
        std::string text = fmt::format("{}", value.get<double>());
        return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
    }
    return base::JsonText(value);
}

std::string FieldText(const std::vector<Step>& path) {
    std::string text;
    for (const Step& step : path) {
        if (const auto* index = std::get_if<std::size_t>(&step)) {
            text += fmt::format("[{}]", *index);
        } else if (const auto& name = std::get<std::string>(step); IsPlainName(name)) {
            text += text.empty() ? name : "." + name;
        } else {
            text += "[" + QuotedText(name) + "]";
        }
    }
    return text;
}

std::string Text(const Node& node, Binding place);

std::string Joined(const Node& node, std::string_view between, Binding part) {
    std::string text;
    for (const NodePtr& operand : node.operands) {
        if (!text.empty()) text += between;
        text += Text(*operand, part);
    }
    return text;
}

std::string Membership(const Node& node) {
    std::string text = Text(*node.operands.front(), Binding::kOperand) + " in (";
    for (std::size_t i = 1; i < node.operands.size(); ++i) {
        if (i > 1) text += ", ";
        text += LiteralText(node.operands[i]->value);
    }
    return text + ")";
}

std::string Bare(const Node& node) {
    switch (node.op) {
        case Op::kLiteral:
            return LiteralText(node.value);
        case Op::kField:
            return FieldText(node.path);
        // One step closer for the parts: a chain inside a chain keeps its parentheses.
        case Op::kOr:
            return Joined(node, " OR ", Binding::kAnd);
        case Op::kAnd:
            return Joined(node, " AND ", Binding::kNot);
        case Op::kNot:
            return "NOT " + Text(*node.operands.front(), Binding::kNot);
        case Op::kIn:
            return Membership(node);
        default:
            return Joined(node, fmt::format(" {} ", Symbol(node.op)), Binding::kOperand);
    }
}

std::string Text(const Node& node, Binding place) {
    std::string text = Bare(node);
    return BindingOf(node.op) < place ? "(" + text + ")" : text;
}

}  // namespace

std::string Path::Print() const {
    return FieldText(steps_);
}

std::string Expression::Print() const {
    return Text(*root_, Binding::kOr);
}

}  // namespace stint::model::match
