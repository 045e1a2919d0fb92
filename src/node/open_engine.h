// Opening an engine in a program that is nothing but a worker.
#pragma once

#include <stint/engine.h>

#include <functional>
#include <optional>

namespace stint::node {

// Like Engine(options), but a server that cannot be reached is waited for, however long it takes,
// with a warning to options.log about once a minute. What waiting does not cure is thrown:
// StoreError, and std::invalid_argument for the options themselves. `pause` sleeps; when it returns
// false the wait is given up and there is no engine.
std::optional<Engine> OpenEngine(
    const Options& options, const std::function<bool(Duration)>& pause
);

}  // namespace stint::node
