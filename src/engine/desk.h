// What a handler may ask of the store while it runs.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "base/clock.h"
#include "store/flows.h"
#include "store/results.h"
#include "store/store.h"

namespace stint::engine {

// Everything throws stint::Retryable when there is no answer to be had.
class Desk {
public:
    virtual ~Desk() = default;
    virtual TaskId TakeId() = 0;  // for a task that will be made
    virtual std::vector<model::WaitMember> Waited(TaskId task) = 0;
    // Of the given ones those that are terminal; maybe not all at once: ask again for the rest.
    virtual std::vector<store::FinishedTask> Finished(std::span<const TaskId> tasks) = 0;

    // Whether the handler's task is one of this store, as far as can be known. Does not throw.
    virtual bool IsOf(store::Store& store);

    // ---- for flows, which run in the worker's own process ----
    virtual void Flows(const std::function<void(store::FlowStore&)>& question);
    virtual Time StoreTime();
    // A task was made in this queue.
    virtual void Hint(const std::string& queue, bool due_now);
    // nullopt: the task is not held with that token.
    virtual std::optional<ItemCounts> WriteResults(const store::ResultWrite& write) = 0;
    virtual model::ResultSummary Results(TaskId task) = 0;
};

// In the worker's process. A handler that was left behind may outlive the worker: then it is closed
// and answers no more.
class StoreDesk final : public Desk {
public:
    // `hint`: tells that a task was made in a queue.
    StoreDesk(
        store::Store& store,
        base::Clock& clock,
        std::function<void(const std::string&)> hint = nullptr
    )
        : clock_(clock), hint_(std::move(hint)), store_(&store) {}

    TaskId TakeId() override;
    std::vector<model::WaitMember> Waited(TaskId task) override;
    std::vector<store::FinishedTask> Finished(std::span<const TaskId> tasks) override;
    bool IsOf(store::Store& store) override;
    void Flows(const std::function<void(store::FlowStore&)>& question) override;
    Time StoreTime() override;
    void Hint(const std::string& queue, bool due_now) override;
    std::optional<ItemCounts> WriteResults(const store::ResultWrite& write) override;
    model::ResultSummary Results(TaskId task) override;

    void Close();  // waits for those who are asking

private:
    template <class Question>
    auto Ask(Question question);

    base::Clock& clock_;
    const std::function<void(const std::string&)> hint_;
    std::mutex mutex_;  // guards all below; never held while the store is asked
    std::condition_variable answered_;
    store::Store* store_;  // null: closed
    int asking_ = 0;
    std::int64_t next_id_ = 0;
    std::int64_t end_id_ = 0;
    base::Instant ids_until_{};  // then the block is too old to be used
};

}  // namespace stint::engine
