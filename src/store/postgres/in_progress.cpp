#include "store/postgres/in_progress.h"

#include <charconv>

#include "base/check.h"

namespace stint::store::pg {

namespace {

std::uint64_t TakeNumber(std::string_view& text) {
    std::uint64_t number = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    CHECK(error == std::errc{});
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.empty()) text.remove_prefix(1);  // what stands between two
    return number;
}

}  // namespace

InProgress ParseInProgress(std::string_view text) {
    InProgress seen;
    TakeNumber(text);
    seen.next = TakeNumber(text);
    while (!text.empty()) seen.running.push_back(TakeNumber(text));
    return seen;
}

}  // namespace stint::store::pg
