// Accepting tasks. The id is known before the commit, so a commit whose end is unknown is resolved
// by looking for the id (or the idempotency key), never by blindly sending again.
#pragma once

#include <stint/log.h>
#include <stint/result.h>

#include <mutex>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "engine/metrics.h"
#include "store/store.h"
#include "wake/wake.h"

namespace stint::engine {

class Submitter {
public:
    Submitter(
        store::Store& store,
        wake::Wake& wake,
        base::Clock& clock,
        base::Random& random,
        LogSink log,
        Metrics* metrics = nullptr,
        int ids_at_once = kIdsAtOnce
    );

    // Reserved at once by a program that submits again and again; the rest of a block is lost when
    // the process ends. A program that submits once reserves what it needs: short ids are easier to
    // type.
    static constexpr int kIdsAtOnce = 1000;

    // Never throws for a store that fails. One answer per task, in order. An id: that task stands
    // for the request and is durable (it may be an older one with the same key). In transactions of
    // at most limits::kSubmitBatch.
    std::vector<Result<TaskId>> Submit(std::vector<model::NewTask> tasks);
    Result<TaskId> Submit(model::NewTask task);

    // All or none, in one transaction; those of the batch may name each other by index (see Link).
    // An error: nothing was stored, or nobody knows.
    struct Link {
        std::size_t task;   // starts after …
        std::size_t after;  // … this one
    };
    Result<std::vector<TaskId>> SubmitAll(
        std::vector<model::NewTask> tasks, std::span<const Link> links
    );

    // Inside the caller's transaction: accepted if and only if that commits. No wake-up follows.
    std::vector<Result<TaskId>> SubmitIn(
        store::Transaction& transaction, std::vector<model::NewTask> tasks
    );

    // Answers with all the store said, for doors that show it.
    std::vector<Result<store::SubmitReply>> SubmitForReplies(std::vector<model::NewTask> tasks);

private:
    using Replies = std::vector<Result<store::SubmitReply>>;

    void GiveIds(std::span<model::NewTask> tasks);
    // What a handler submits follows from its task.
    void NameCause(std::span<model::NewTask> tasks);
    // How a batch is sent: Store::Submit or Store::SubmitAll.
    using Sending =
        std::vector<store::SubmitReply> (store::Store::*)(std::span<const model::NewTask>);
    Replies SubmitBatch(std::vector<model::NewTask> tasks);
    Replies Attempt(std::vector<model::NewTask>& tasks, Sending send);
    Replies ReadBack(std::vector<model::NewTask>& tasks, Sending send, const std::string& why);
    Replies Repeat(std::span<const model::NewTask> tasks, Sending send);
    bool FoundAll(
        std::span<const model::NewTask> tasks, Replies& replies, std::vector<std::size_t>& missing
    );
    void Signal(const Replies& replies);

    store::Store& store_;
    wake::Wake& wake_;
    base::Clock& clock_;
    base::Random& random_;
    const base::Logger log_;
    Metrics own_metrics_;
    Metrics& metrics_;
    const int ids_at_once_;

    std::mutex mutex_;
    std::int64_t next_id_ = 0;   // guarded by mutex_: of the reserved block
    std::int64_t end_id_ = 0;    // guarded by mutex_
    base::Instant ids_until_{};  // guarded by mutex_: then the block is too old to be used
};

}  // namespace stint::engine
