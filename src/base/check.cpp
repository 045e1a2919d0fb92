#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace stint::base {

void CheckFailed(const char* file, int line, const char* condition, std::string_view why) {
    std::fprintf(
        stderr,
        "stint: internal error at %s:%d: %s%s%.*s\n",
        file,
        line,
        condition,
        why.empty() ? "" : ": ",
        static_cast<int>(why.size()),
        why.data()
    );
    std::fflush(stderr);
    std::abort();
}

}  // namespace stint::base
