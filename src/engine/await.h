// Waiting for tasks that any process may finish: one batched question for all waiting handles,
// asked by one of the waiting threads, at growing intervals; a hint cuts the interval short.
#pragma once

#include <stint/log.h>
#include <stint/options.h>
#include <stint/run.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "store/store.h"
#include "wake/wake.h"

namespace stint::engine {

// What a store's answer to a cancel of this task means to a program.
Result<Cancelled> ToCancelled(TaskId task, const store::CancelReply& reply);

class Await final : public detail::Waiter {
public:
    Await(
        store::Store& store,
        wake::Wake& wake,
        base::Clock& clock,
        base::Random& random,
        PollOptions poll,
        LogSink log
    );
    ~Await() override;

    // False also while the store cannot be asked.
    bool Done(TaskId task) override;
    // Outlasts an unreachable store; kUnavailable only when the limit ends while it is away.
    Result<std::string> Wait(TaskId task, std::optional<Duration> limit, std::stop_token stop)
        override;
    Result<Cancelled> Cancel(TaskId task, std::string_view reason) override;

    int waiting() const;
    // The store is about to go: ends all waits with kUnavailable and refuses new ones. Handles may
    // outlive the engine.
    void Close();

private:
    using Answer = Result<std::string>;
    // A call that may use the store; Close waits for its end.
    class Inside {
    public:
        explicit Inside(Await& await);
        ~Inside();
        explicit operator bool() const { return open_; }

    private:
        Await& await_;
        bool open_ = false;
    };
    struct Entry {
        int waiters = 0;
        std::optional<store::FinishedTask> finished;
        bool known = false;    // seen in the store, finished or not
        bool missing = false;  // there is no such task
    };

    std::optional<Answer> Enter(TaskId task);
    void Leave(TaskId task);
    std::optional<Answer> Look(TaskId task) const;
    void Poll(std::unique_lock<std::mutex>& lock);
    void Ask(std::unique_lock<std::mutex>& lock);
    void Hear(const wake::Hint& hint);
    static Answer ToAnswer(const store::FinishedTask& finished);

    store::Store& store_;
    wake::Wake& wake_;
    base::Clock& clock_;
    base::Random& random_;
    const PollOptions poll_;
    const base::Logger log_;
    int subscription_ = 0;

    mutable std::mutex mutex_;
    std::condition_variable_any changed_;
    std::map<TaskId, Entry> entries_;  // guarded by mutex_, as all below
    bool closed_ = false;
    int inside_ = 0;
    bool polling_ = false;  // one thread asks for all
    bool away_ = false;     // the store did not answer last time
    base::Instant poll_at_{};
    Duration interval_{};
};

}  // namespace stint::engine
