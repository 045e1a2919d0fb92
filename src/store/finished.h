// Store::Finished() answers as much as kFinishedBytes at a time: whoever wants all asks again.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "model/limits.h"
#include "store/store.h"

namespace stint::store {

inline std::size_t BytesOf(const FinishedTask& task) {
    std::size_t bytes = task.output.size();
    if (task.error) bytes += task.error->message.size() + task.error->stack.size();
    return bytes;
}

// Calls `take` with each of the tasks that is finished; `ask` is Store::Finished, or a way to it.
template <class Ask, class Take>
void EachFinished(std::span<const TaskId> tasks, Ask&& ask, Take&& take) {
    std::vector<TaskId> open(tasks.begin(), tasks.end());
    while (!open.empty()) {
        std::vector<FinishedTask> answers = ask(std::span<const TaskId>(open));
        std::vector<TaskId> told;
        std::size_t bytes = 0;
        for (FinishedTask& one : answers) {
            bytes += BytesOf(one);
            told.push_back(one.id);
            take(std::move(one));
        }
        // Of what is not much nothing was left out. Errors are longer where they are stored.
        if (told.empty() || bytes < limits::kFinishedBytes / 2) return;
        std::sort(told.begin(), told.end());
        std::erase_if(open, [&](TaskId task) {
            return std::binary_search(told.begin(), told.end(), task);
        });
    }
}

}  // namespace stint::store
