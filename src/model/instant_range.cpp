#include "model/instant_range.h"

#include "base/result.h"

namespace stint::model {

Result<void> CheckInstant(std::string_view field, Time at) {
    using namespace std::chrono;
    constexpr Time kFirst{sys_days{1970y / 1 / 1}};
    constexpr Time kLast{sys_days{9999y / 12 / 31}};
    if (at >= kFirst && at <= kLast) return {};
    return base::MakeError(
        Code::kInvalid,
        "{} is {} µs from 1970; it must lie in the years 1970 to 9999",
        field,
        at.time_since_epoch().count()
    );
}

}  // namespace stint::model
