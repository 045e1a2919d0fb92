#include "model/needs.h"

#include <algorithm>
#include <charconv>

#include "base/result.h"
#include "base/text.h"

namespace stint::model {

bool Covers(const Needs& held, std::string_view resource, int units) {
    return std::ranges::any_of(held, [&](const Need& need) {
        return base::EqualIgnoringCase(need.resource, resource) && need.units >= units;
    });
}

Result<Need> ParseNeed(std::string_view text) {
    std::size_t mark = text.find('=');
    Need need{ResourceName(text.substr(0, mark))};
    bool good = !need.resource.empty();
    if (mark != text.npos) {
        std::string_view number = text.substr(mark + 1);
        const char* end = number.data() + number.size();
        auto [rest, error] = std::from_chars(number.data(), end, need.units);
        good = good && error == std::errc{} && rest == end && need.units > 0;
    }
    if (good) return need;
    return base::MakeError(
        Code::kInvalid,
        "the need is {}; write a resource's name, or NAME=UNITS with a whole number above 0",
        base::Quoted(text)
    );
}

std::string NeedsText(const Needs& needs) {
    std::string text;
    for (const Need& need : needs) {
        if (!text.empty()) text += ", ";
        text += need.resource;
        if (need.units != 1) text += "=" + std::to_string(need.units);
    }
    return text;
}

}  // namespace stint::model
