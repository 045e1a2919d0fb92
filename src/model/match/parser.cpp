#include <optional>

#include "base/check.h"
#include "base/result.h"
#include "model/limits.h"
#include "model/match/expression.h"
#include "model/match/lexer.h"

namespace stint::model::match {

namespace {

using base::MakeError;

std::optional<Op> Comparison(Word word) {
    switch (word) {
        case Word::kEqual:
            return Op::kEqual;
        case Word::kNotEqual:
            return Op::kNotEqual;
        case Word::kLess:
            return Op::kLess;
        case Word::kLessEqual:
            return Op::kLessEqual;
        case Word::kGreater:
            return Op::kGreater;
        case Word::kGreaterEqual:
            return Op::kGreaterEqual;
        case Word::kStartsWith:
            return Op::kStartsWith;
        case Word::kEndsWith:
            return Op::kEndsWith;
        case Word::kContains:
            return Op::kContains;
        default:
            return std::nullopt;
    }
}

bool IsMethod(Word word) {
    return word == Word::kStartsWith || word == Word::kEndsWith || word == Word::kContains;
}

NodePtr Make(Op op, std::vector<NodePtr> operands) {
    return std::make_shared<const Node>(Node{.op = op, .operands = std::move(operands)});
}

// Recursive descent, one function per level of binding.
class Parser {
public:
    explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

    Result<NodePtr> Whole() {
        auto root = Alternatives();
        if (!root || Is(Word::kEnd)) return root;
        return Unexpected(token(), "AND, OR or the end");
    }

private:
    // Every level that can nest counts.
    struct Deeper {
        explicit Deeper(int& depth) : depth_(depth) { ++depth_; }
        ~Deeper() { --depth_; }
        Deeper(const Deeper&) = delete;
        Deeper& operator=(const Deeper&) = delete;
        int& depth_;
    };

    const Token& token() const { return tokens_[at_]; }
    bool Is(Word word) const { return token().word == word; }
    bool Skip(Word word) {
        if (!Is(word)) return false;
        ++at_;
        return true;
    }

    Result<NodePtr> Alternatives() { return Chain(Word::kOr, Op::kOr, &Parser::Conjunction); }
    Result<NodePtr> Conjunction() { return Chain(Word::kAnd, Op::kAnd, &Parser::Negation); }

    Result<NodePtr> Chain(Word between, Op op, Result<NodePtr> (Parser::*part)()) {
        auto first = (this->*part)();
        if (!first || !Is(between)) return first;
        std::vector<NodePtr> parts;
        parts.push_back(std::move(*first));
        while (Skip(between)) {
            auto next = (this->*part)();
            if (!next) return next;
            parts.push_back(std::move(*next));
        }
        return Make(op, std::move(parts));
    }

    bool TooDeep() const { return depth_ > limits::kMatchDepth; }
    Error Refusal() const {
        return MakeError(
            Code::kLimit, "column {}: nested more than {} deep", token().column, limits::kMatchDepth
        );
    }

    Result<NodePtr> Negation() {
        Deeper deeper(depth_);
        if (TooDeep()) return Refusal();
        if (!Skip(Word::kNot)) return Condition();
        auto inner = Negation();
        if (!inner) return inner;
        return Make(Op::kNot, {std::move(*inner)});
    }

    Result<NodePtr> Condition() {
        auto left = Operand();
        if (!left) return left;
        bool negated = Is(Word::kNot) && tokens_[at_ + 1].word == Word::kIn;
        if (negated) ++at_;
        if (Is(Word::kIn)) {
            auto member = Membership(std::move(*left));
            if (!member || !negated) return member;
            return Make(Op::kNot, {std::move(*member)});
        }
        std::optional<Op> op = Comparison(token().word);
        if (!op) return left;
        ++at_;
        auto right = Operand();
        if (!right) return right;
        if (Comparison(token().word)) {
            return Unexpected(token(), "AND, OR or the end: comparisons are not chained");
        }
        return Make(*op, {std::move(*left), std::move(*right)});
    }

    // in ('a', 'b') or CEL's in ['a', 'b']
    Result<NodePtr> Membership(NodePtr left) {
        ++at_;
        Word closing = Is(Word::kOpenBracket) ? Word::kCloseBracket : Word::kClose;
        if (!Skip(Word::kOpen) && !Skip(Word::kOpenBracket)) {
            return Unexpected(token(), "a list in parentheses after in");
        }
        std::vector<NodePtr> operands;
        operands.push_back(std::move(left));
        do {
            if (!Is(Word::kValue)) return Unexpected(token(), "a value in the list");
            operands.push_back(Literal());
        } while (Skip(Word::kComma));
        if (!Skip(closing)) return Unexpected(token(), "a comma or the end of the list");
        return Make(Op::kIn, std::move(operands));
    }

    NodePtr Literal() {
        return std::make_shared<const Node>(Node{.op = Op::kLiteral, .value = tokens_[at_++].value}
        );
    }

    Result<NodePtr> Operand() {
        if (Is(Word::kValue)) return Literal();
        if (Skip(Word::kOpen)) {
            auto inner = Alternatives();
            if (!inner) return inner;
            if (!Skip(Word::kClose)) return Unexpected(token(), "a closing parenthesis");
            return inner;
        }
        if (Is(Word::kName) || Is(Word::kOpenBracket)) return Field();
        return Unexpected(token(), "a field, a value, NOT or a parenthesis");
    }

    Result<NodePtr> Field() {
        std::vector<Step> path;
        if (Is(Word::kName)) path.emplace_back(std::string(tokens_[at_++].text));
        while (true) {
            if (Skip(Word::kDot)) {
                if (IsMethod(token().word) && tokens_[at_ + 1].word == Word::kOpen) {
                    return Method(std::move(path));
                }
                auto name = MemberName();
                if (!name) return name.error();
                path.emplace_back(std::move(*name));
            } else if (Skip(Word::kOpenBracket)) {
                auto step = Subscript();
                if (!step) return step.error();
                path.push_back(std::move(*step));
            } else {
                return FieldOf(std::move(path));
            }
        }
    }

    // After a dot the words of the language are names like any other.
    Result<std::string> MemberName() {
        bool worded =
            !token().text.empty() && token().text.front() != '\'' && token().text.front() != '"';
        bool named =
            Is(Word::kName) || (worded && token().word >= Word::kAnd &&
                                token().word <= Word::kContains && token().text.front() != '&' &&
                                token().text.front() != '|' && token().text.front() != '!');
        if (!named) return Unexpected(token(), "the name of a field after the dot");
        return std::string(tokens_[at_++].text);
    }

    Result<Step> Subscript() {
        if (!Is(Word::kValue)) return Unexpected(token(), "an index or a name in quotes");
        const base::Json& value = token().value;
        Step step;
        if (value.is_string()) {
            step = value.get<std::string>();
        } else if (value.is_number_integer() && value.get<std::int64_t>() >= 0) {
            step = value.get<std::size_t>();
        } else {
            return Unexpected(token(), "an index of 0 or more, or a name in quotes");
        }
        ++at_;
        if (!Skip(Word::kCloseBracket)) return Unexpected(token(), "a closing bracket");
        return step;
    }

    // CEL's name.startsWith('a')
    Result<NodePtr> Method(std::vector<Step> path) {
        Deeper deeper(depth_);
        if (TooDeep()) return Refusal();
        Op op = *Comparison(token().word);
        at_ += 2;
        auto argument = Operand();
        if (!argument) return argument;
        if (!Skip(Word::kClose)) return Unexpected(token(), "a closing parenthesis");
        return Make(op, {FieldOf(std::move(path)), std::move(*argument)});
    }

    static NodePtr FieldOf(std::vector<Step> path) {
        return std::make_shared<const Node>(Node{.op = Op::kField, .path = std::move(path)});
    }

    const std::vector<Token> tokens_;
    std::size_t at_ = 0;
    int depth_ = 0;
};

// What is accepted can be printed, and what is printed is accepted: in the one spelling it may be
// longer, and nested deeper, than it was written.
Result<void> CheckKept(std::string_view printed) {
    constexpr std::string_view kHow =
        "when it is written out as it is kept, with NOT, AND, OR and single quotes";
    if (printed.size() > limits::kMatchText) {
        return MakeError(
            Code::kLimit,
            "has {} bytes {}; a match expression has at most {}",
            printed.size(),
            kHow,
            limits::kMatchText
        );
    }
    auto tokens = Lex(printed);
    CHECK_WHY(tokens.has_value(), std::string(printed));
    auto again = Parser(std::move(*tokens)).Whole();
    if (again) return {};
    CHECK_WHY(again.error().code == Code::kLimit, std::string(printed));
    return MakeError(Code::kLimit, "is nested more than {} deep {}", limits::kMatchDepth, kHow);
}

}  // namespace

Result<Expression> Expression::Parse(std::string_view text) {
    if (text.size() > limits::kMatchText) {
        return MakeError(
            Code::kLimit,
            "has {} bytes; a match expression has at most {}",
            text.size(),
            limits::kMatchText
        );
    }
    auto tokens = Lex(text);
    if (!tokens) return tokens.error();
    auto root = Parser(std::move(*tokens)).Whole();
    if (!root) return root.error();
    Expression expression(std::move(*root));
    if (auto kept = CheckKept(expression.Print()); !kept) return kept.error();
    return expression;
}

Result<Path> Path::Parse(std::string_view text) {
    auto whole = Expression::Parse(text);
    if (!whole) return whole.error();
    if (whole->root_->op != Op::kField) {
        return MakeError(Code::kInvalid, "column 1: expected one field, such as owner.name");
    }
    return Path(whole->root_->path);
}

}  // namespace stint::model::match
