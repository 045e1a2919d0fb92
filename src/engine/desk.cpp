#include "engine/desk.h"

#include <stint/outcome.h>

#include "model/limits.h"

namespace stint::engine {

namespace {
constexpr int kIdsAtOnce = 100;
}

template <class Question>
auto StoreDesk::Ask(Question question) {
    // However the asking ends.
    struct Asking {
        explicit Asking(StoreDesk& desk_in) : desk(desk_in) {
            std::lock_guard guard(desk.mutex_);
            if (desk.store_ == nullptr) throw Retryable("the worker of this handler is gone");
            ++desk.asking_;
        }
        ~Asking() {
            std::lock_guard guard(desk.mutex_);
            --desk.asking_;
            desk.answered_.notify_all();
        }
        Asking(const Asking&) = delete;
        Asking& operator=(const Asking&) = delete;
        StoreDesk& desk;
    };
    Asking asking(*this);
    try {
        return question(*store_);  // not closed before we are done
    } catch (const std::exception& error) {
        throw Retryable(std::string("the store could not be asked: ") + error.what());
    }
}

TaskId StoreDesk::TakeId() {
    {
        std::lock_guard guard(mutex_);
        if (next_id_ < end_id_ && clock_.Now() < ids_until_) return TaskId(next_id_++);
    }
    base::Instant asked = clock_.Now();
    TaskId first = Ask([](store::Store& store) { return store.ReserveIds(kIdsAtOnce); });
    std::lock_guard guard(mutex_);
    // Two handlers may both have fetched a block: one is lost, ids are plenty.
    next_id_ = first.value();
    end_id_ = next_id_ + kIdsAtOnce;
    ids_until_ = asked + model::limits::kIdsKept;
    return TaskId(next_id_++);
}

std::vector<model::WaitMember> StoreDesk::Waited(TaskId task) {
    return Ask([task](store::Store& store) { return store.Waited(task); });
}

std::vector<store::FinishedTask> StoreDesk::Finished(std::span<const TaskId> tasks) {
    return Ask([tasks](store::Store& store) { return store.Finished(tasks); });
}

bool Desk::IsOf(store::Store&) {
    return true;
}

// Most often it is the same object; another one may lead to the same store.
bool StoreDesk::IsOf(store::Store& store) {
    try {
        return Ask([&](store::Store& mine) {
            return &mine == &store || mine.Info().identity == store.Info().identity;
        });
    } catch (const std::exception&) {
        return true;  // rather counted once too often than not at all
    }
}

void Desk::Flows(const std::function<void(store::FlowStore&)>&) {
    throw Retryable("this attempt has nobody to ask about flows");
}

Time Desk::StoreTime() {
    throw Retryable("this attempt has nobody to ask for the time");
}

void Desk::Hint(const std::string&, bool) {
}

void StoreDesk::Flows(const std::function<void(store::FlowStore&)>& question) {
    Ask([&](store::Store& store) { question(store.Flows()); });
}

Time StoreDesk::StoreTime() {
    return Ask([](store::Store& store) { return store.Now(); });
}

void StoreDesk::Hint(const std::string& queue, bool due_now) {
    if (!due_now || !hint_) return;
    Ask([&](store::Store&) { hint_(queue); });  // the worker is still there
}

std::optional<ItemCounts> StoreDesk::WriteResults(const store::ResultWrite& write) {
    return Ask([&](store::Store& store) { return store.Results().Write(write); });
}

model::ResultSummary StoreDesk::Results(TaskId task) {
    return Ask([task](store::Store& store) { return store.Results().Summary(task); });
}

void StoreDesk::Close() {
    std::unique_lock lock(mutex_);
    answered_.wait(lock, [this] { return asking_ == 0; });
    store_ = nullptr;
}

}  // namespace stint::engine
