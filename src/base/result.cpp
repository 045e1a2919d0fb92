#include "base/result.h"

#include "base/check.h"

namespace stint {

std::string_view CodeName(Code code) {
    switch (code) {
        case Code::kInvalid:
            return "invalid";
        case Code::kNotFound:
            return "not_found";
        case Code::kConflict:
            return "conflict";
        case Code::kTimeout:
            return "timeout";
        case Code::kCancelled:
            return "cancelled";
        case Code::kFailed:
            return "failed";
        case Code::kUnavailable:
            return "unavailable";
        case Code::kUnknown:
            return "unknown";
        case Code::kLeaseLost:
            return "lease_lost";
        case Code::kLimit:
            return "limit";
    }
    base::CheckFailed(__FILE__, __LINE__, "CodeName", "not a code");
}

}  // namespace stint
