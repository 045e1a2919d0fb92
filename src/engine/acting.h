// Which task's handler runs on this thread: what it publishes or submits follows from that task,
// whether the handler says so or not.
#pragma once

#include <stint/ids.h>

#include <memory>

#include "engine/desk.h"

namespace stint::engine {

// Around the call of a handler.
class Acting {
public:
    // `desk`: of the attempt; null, or one without a store: the task may be of any store.
    Acting(TaskId task, std::shared_ptr<Desk> desk);
    ~Acting();
    Acting(const Acting&) = delete;
    Acting& operator=(const Acting&) = delete;

    // The task, if it is one of this store; none where no handler runs.
    static TaskId In(store::Store& store);

private:
    const TaskId task_;
    const std::shared_ptr<Desk> desk_;
    const Acting* const before_;  // a handler may run others, as tests do
};

}  // namespace stint::engine
