// CHECK: our own bugs end the process at once, in every build, with the place and the reason.
#pragma once

#include <string_view>

namespace stint::base {

[[noreturn]] void CheckFailed(
    const char* file, int line, const char* condition, std::string_view why
);

}  // namespace stint::base

#define CHECK(condition)                                                    \
    do {                                                                    \
        if (!(condition)) [[unlikely]]                                      \
            ::stint::base::CheckFailed(__FILE__, __LINE__, #condition, {}); \
    } while (false)

#define CHECK_WHY(condition, why)                                              \
    do {                                                                       \
        if (!(condition)) [[unlikely]]                                         \
            ::stint::base::CheckFailed(__FILE__, __LINE__, #condition, (why)); \
    } while (false)
