// What a failed operation of the store means to the caller who asked for it.
#pragma once

#include <stint/result.h>

#include <exception>

#include "store/store.h"

namespace stint::engine {

// Anything that is not known to have changed nothing may have changed something.
inline Error StoreFailure(const std::exception& error) {
    if (dynamic_cast<const store::Unavailable*>(&error) != nullptr) {
        return {Code::kUnavailable, error.what()};
    }
    if (dynamic_cast<const store::WrongSchema*>(&error) != nullptr) {
        return {Code::kConflict, error.what()};
    }
    if (dynamic_cast<const store::Unstorable*>(&error) != nullptr) {
        return {Code::kInvalid, error.what()};
    }
    return {Code::kUnknown, error.what()};
}

}  // namespace stint::engine
