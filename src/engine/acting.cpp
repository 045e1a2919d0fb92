#include "engine/acting.h"

namespace stint::engine {

namespace {
thread_local const Acting* acting = nullptr;
}

Acting::Acting(TaskId task, std::shared_ptr<Desk> desk)
    : task_(task), desk_(std::move(desk)), before_(acting) {
    acting = this;
}

Acting::~Acting() {
    acting = before_;
}

TaskId Acting::In(store::Store& store) {
    if (acting == nullptr) return {};
    if (acting->desk_ && !acting->desk_->IsOf(store)) return {};
    return acting->task_;
}

}  // namespace stint::engine
