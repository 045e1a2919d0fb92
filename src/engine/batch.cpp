#include <stint/batch.h>

#include "base/result.h"

namespace stint::detail {

std::exception_ptr WrongBatchSize(std::size_t given, std::size_t returned) {
    return std::make_exception_ptr(Permanent(fmt::format(
        "the batch handler was given {} tasks and returned {} outcomes: return one for each, in "
        "the same order",
        given,
        returned
    )));
}

}  // namespace stint::detail
