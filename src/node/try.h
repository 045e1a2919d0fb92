// What the store or the doors throw, as the answer of a public call.
#pragma once

#include <stint/result.h>

#include "engine/store_failure.h"
#include "node/client.h"

namespace stint::node {

template <class Question>
auto Try(Question question) -> decltype(question()) {
    try {
        return question();
    } catch (const StoreError& error) {
        return Error{error.code(), error.what()};
    } catch (const std::exception& error) {
        return engine::StoreFailure(error);
    }
}

}  // namespace stint::node
