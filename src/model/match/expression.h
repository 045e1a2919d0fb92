// The match language of triggers: conditions on the fields of an event.
//
//   mimeType startsWith 'image/' AND size > 1024
//   owner.name in ('ann', 'bob') OR NOT (tags contains 'draft')
//   mimeType == "image/png" && owner.name.startsWith("a")            (CEL's spelling)
//
// Words and values. A field is a name with .name, [index] or ['any name'] behind it, read from the
// event's JSON; it may begin with ['any name']. A field that is not there is null. Strings are in
// single or double quotes, a quote inside is doubled; numbers, true, false, null. Keywords are
// written in any case.
//
// Every question has an answer, whatever the event holds:
//   =  !=        equal kind and value; different kinds are different; null equals only null
//   <  <= > >=   of two numbers, or of two strings by their bytes; anything else: false
//   startsWith endsWith contains   of two strings; contains also looks into an array; else false
//   in (a, b)    equal to one of them
//   a field or value alone         true only when it is the boolean true
//   NOT AND OR   NOT binds closest, then AND, then OR
//
// There are no loops, variables, functions or patterns; the text, the nesting and the work of one
// evaluation are limited.
#pragma once

#include <stint/result.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"

namespace stint::model::match {

enum class Op : std::uint8_t {
    kLiteral,
    kField,
    kOr,
    kAnd,
    kNot,
    kEqual,
    kNotEqual,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kStartsWith,
    kEndsWith,
    kContains,
    kIn,  // the first operand, then the list
};

using Step = std::variant<std::string, std::size_t>;  // a member's name, an element's index

struct Node;
using NodePtr = std::shared_ptr<const Node>;
struct Node {
    Op op = Op::kLiteral;
    base::Json value{};        // of a literal: string, number, boolean or null
    std::vector<Step> path{};  // of a field
    std::vector<NodePtr> operands{};
};

// A field alone, written as in an expression: owner.name, tags[0], ['odd name'].
class Path {
public:
    static Result<Path> Parse(std::string_view text);

    // The field's value; null when it is not there.
    const base::Json& In(const base::Json& event) const;
    std::string Print() const;

    friend bool operator==(const Path&, const Path&) = default;

private:
    explicit Path(std::vector<Step> steps) : steps_(std::move(steps)) {}
    std::vector<Step> steps_;
};

class Expression {
public:
    // The message says the column, what was expected there, and what was found.
    static Result<Expression> Parse(std::string_view text);

    // The one spelling of this expression; parsing it gives the same tree.
    std::string Print() const;

    // An error only when the event makes it more work than one evaluation may be.
    Result<bool> Matches(const base::Json& event) const;

    friend bool operator==(const Expression& a, const Expression& b);

private:
    friend class Path;
    explicit Expression(NodePtr root) : root_(std::move(root)) {}
    NodePtr root_;
};

}  // namespace stint::model::match
