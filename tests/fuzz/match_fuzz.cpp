// Any bytes as a match expression, and any others as its event: the parser ends with a tree or with
// a message, printing and parsing again gives the same tree, and evaluation ends.
//
//   fuzz_match -max_total_time=600          goes on from where it got; see -help=1
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "model/limits.h"
#include "model/match/expression.h"

using stint::model::match::Expression;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    std::string_view all(reinterpret_cast<const char*>(bytes), size);
    std::size_t line = all.find('\n');
    std::string_view text = all.substr(0, line);
    std::string_view data = line == all.npos ? "{}" : all.substr(line + 1);
    auto parsed = Expression::Parse(text);
    if (!parsed) {
        CHECK(!parsed.error().message.empty());
        return 0;
    }
    std::string printed = parsed->Print();
    auto again = Expression::Parse(printed);
    CHECK_WHY(again.has_value(), printed);
    CHECK_WHY(*again == *parsed, printed);
    CHECK_WHY(again->Print() == printed, printed);
    auto event = stint::base::ParseJson(data, stint::model::limits::kJsonDepth);
    if (!event) return 0;
    auto first = parsed->Matches(*event);
    auto second = again->Matches(*event);
    CHECK(first.has_value() == second.has_value());
    if (first) CHECK(*first == *second);
    return 0;
}
