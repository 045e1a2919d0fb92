#include "cli/exit_code.h"

namespace stint::cli {

int ExitOf(Code code) {
    switch (code) {
        case Code::kInvalid:
            return kUsage;
        case Code::kNotFound:
            return kNotFound;
        case Code::kConflict:
        case Code::kLeaseLost:
            return kConflict;
        case Code::kTimeout:
            return kStillRunning;
        case Code::kCancelled:
            return kTaskCancelled;
        case Code::kFailed:
            return kTaskFailed;
        case Code::kUnavailable:
            return kUnreachable;
        case Code::kUnknown:
            return kUnknown;
        case Code::kLimit:
            return kFailed;
    }
    return kFailed;
}

}  // namespace stint::cli
