// In which order the tasks of one submit can be stored when some of them wait for others of it.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "model/task.h"

namespace stint::model {

struct BatchOrder {
    std::vector<std::size_t> order;  // indexes; each comes after those that it waits for
    // Who waits for itself, directly or through others, and why it is refused: the cycle by ids.
    std::map<std::size_t, std::string> refused;
};
// Tasks name each other by the ids that were reserved for them.
BatchOrder OrderOf(std::span<const NewTask> tasks);

bool AnyAfter(std::span<const NewTask> tasks);

}  // namespace stint::model
