// Result for internal use: the public type, and a helper to make errors.
#pragma once

#include <fmt/format.h>
#include <stint/result.h>

namespace stint::base {

template <class... Args>
Error MakeError(Code code, fmt::format_string<Args...> format, Args&&... args) {
    return Error{code, fmt::format(format, std::forward<Args>(args)...)};
}

}  // namespace stint::base
