#include "engine/submit.h"

#include <algorithm>

#include "base/check.h"
#include "base/planted_bug.h"
#include "base/result.h"
#include "base/test_point.h"
#include "engine/acting.h"
#include "engine/pulse.h"
#include "engine/store_failure.h"
#include "model/limits.h"

namespace stint::engine {

namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds{50};
constexpr Duration kLongestPause = std::chrono::seconds{1};

Result<store::SubmitReply> ToResult(store::SubmitReply reply) {
    using Kind = store::SubmitReply::Kind;
    switch (reply.kind) {
        case Kind::kConflict:
            return Error{Code::kConflict, std::move(reply.message)};
        case Kind::kQueueFull:
            return Error{Code::kLimit, std::move(reply.message)};
        case Kind::kInvalid:
            return Error{Code::kInvalid, std::move(reply.message)};
        default:
            return reply;
    }
}

std::vector<Result<TaskId>> IdsOf(std::vector<Result<store::SubmitReply>> replies) {
    std::vector<Result<TaskId>> ids;
    ids.reserve(replies.size());
    for (auto& reply : replies) {
        if (reply) {
            ids.emplace_back(reply->id);
        } else {
            ids.emplace_back(reply.error());
        }
    }
    return ids;
}

// The valid ones go on, in order; the others have their answer.
std::vector<std::size_t> Screen(
    std::span<const model::NewTask> tasks, std::vector<Result<store::SubmitReply>>& replies
) {
    std::vector<std::size_t> valid;
    valid.reserve(tasks.size());
    replies.reserve(tasks.size());
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        auto checked = model::Validate(tasks[i]);
        if (checked) {
            valid.push_back(i);
            replies.emplace_back(store::SubmitReply{});
        } else {
            replies.emplace_back(checked.error());
        }
    }
    return valid;
}

// The end of a commit that could not be read back in time: how to find out, and how to be safe.
Error Unknown(const model::NewTask& task, const std::string& why) {
    return base::MakeError(
        Code::kUnknown,
        "{}; the store could not be asked again within {} s, so task {} may or may not be stored: "
        "{}",
        why,
        std::chrono::duration_cast<std::chrono::seconds>(model::limits::kReadBack).count(),
        task.id.value(),
        task.idempotency_key.empty()
            ? "look for that id before you submit it again; with an idempotency key a repeated "
              "submit is safe"
            : "submit it again, its idempotency key makes that safe"
    );
}

}  // namespace

Submitter::Submitter(
    store::Store& store,
    wake::Wake& wake,
    base::Clock& clock,
    base::Random& random,
    LogSink log,
    Metrics* metrics,
    int ids_at_once
)
    : store_(store),
      wake_(wake),
      clock_(clock),
      random_(random),
      log_(std::move(log), "submit"),
      metrics_(metrics != nullptr ? *metrics : own_metrics_),
      ids_at_once_(ids_at_once) {
}

Result<TaskId> Submitter::Submit(model::NewTask task) {
    std::vector<model::NewTask> one;
    one.push_back(std::move(task));
    return std::move(Submit(std::move(one)).front());
}

std::vector<Result<TaskId>> Submitter::Submit(std::vector<model::NewTask> tasks) {
    return IdsOf(SubmitForReplies(std::move(tasks)));
}

std::vector<Result<store::SubmitReply>> Submitter::SubmitForReplies(
    std::vector<model::NewTask> tasks
) {
    NameCause(tasks);
    Replies replies;
    std::vector<std::size_t> valid = Screen(tasks, replies);
    for (std::size_t from = 0; from < valid.size(); from += model::limits::kSubmitBatch) {
        std::size_t to = std::min<std::size_t>(valid.size(), from + model::limits::kSubmitBatch);
        std::vector<model::NewTask> batch;
        batch.reserve(to - from);
        for (std::size_t i = from; i < to; ++i) batch.push_back(std::move(tasks[valid[i]]));
        Replies answers = SubmitBatch(std::move(batch));
        for (std::size_t i = from; i < to; ++i) replies[valid[i]] = std::move(answers[i - from]);
    }
    return replies;
}

Result<std::vector<TaskId>> Submitter::SubmitAll(
    std::vector<model::NewTask> tasks, std::span<const Link> links
) {
    if (tasks.size() > model::limits::kSubmitBatch) {
        return base::MakeError(
            Code::kLimit,
            "the graph has {} tasks; the limit is {}",
            tasks.size(),
            model::limits::kSubmitBatch
        );
    }
    NameCause(tasks);
    try {
        GiveIds(tasks);
        for (const Link& link : links) tasks[link.task].after->on.push_back(tasks[link.after].id);
        Replies replies = Attempt(tasks, &store::Store::SubmitAll);
        Signal(replies);
        std::vector<TaskId> ids;
        for (auto& reply : replies) {
            if (!reply) return reply.error();
            ids.push_back(reply->id);
        }
        return ids;
    } catch (const std::exception& error) {
        return StoreFailure(error);
    }
}

std::vector<Result<TaskId>> Submitter::SubmitIn(
    store::Transaction& transaction, std::vector<model::NewTask> tasks
) {
    NameCause(tasks);
    Replies replies;
    std::vector<std::size_t> valid = Screen(tasks, replies);
    std::vector<model::NewTask> batch;
    batch.reserve(valid.size());
    for (std::size_t i : valid) batch.push_back(std::move(tasks[i]));
    // The transaction's own connection assigns the ids: reserving here would need a second one,
    // which a store with one writer does not have while this transaction is open.
    if (batch.empty()) return IdsOf(std::move(replies));
    try {
        auto answers = transaction.Submit(batch);
        CHECK(answers.size() == batch.size());
        for (std::size_t i = 0; i < valid.size(); ++i) {
            replies[valid[i]] = ToResult(std::move(answers[i]));
        }
    } catch (const std::exception& error) {
        for (std::size_t i : valid) replies[i] = StoreFailure(error);
    }
    return IdsOf(std::move(replies));
}

void Submitter::NameCause(std::span<model::NewTask> tasks) {
    const TaskId cause = Acting::In(store_);
    if (!cause.valid()) return;
    for (model::NewTask& task : tasks) {
        if (!task.cause.valid()) task.cause = cause;
    }
}

void Submitter::GiveIds(std::span<model::NewTask> tasks) {
    std::size_t given = 0;
    while (given < tasks.size()) {
        {
            std::lock_guard guard(mutex_);
            // Ids tell the order of submits, roughly, and in which period a task is kept.
            if (clock_.Now() >= ids_until_) next_id_ = end_id_;
            for (; given < tasks.size() && next_id_ < end_id_; ++given) {
                tasks[given].id = TaskId(next_id_++);
            }
        }
        if (given == tasks.size()) return;
        // Outside the lock; two threads may both reserve, and one block is then lost.
        int count = std::max(ids_at_once_, static_cast<int>(tasks.size() - given));
        std::int64_t first = store_.ReserveIds(count).value();
        std::lock_guard guard(mutex_);
        next_id_ = first;
        end_id_ = first + count;
        ids_until_ = clock_.Now() + model::limits::kIdsKept;
        for (; given < tasks.size() && next_id_ < end_id_; ++given) {
            tasks[given].id = TaskId(next_id_++);
        }
    }
}

Submitter::Replies Submitter::SubmitBatch(std::vector<model::NewTask> tasks) {
    try {
        GiveIds(tasks);
    } catch (const std::exception& error) {
        // Nothing was sent yet, whatever became of the reservation.
        return Replies(tasks.size(), Error{Code::kUnavailable, error.what()});
    }
    try {
        base::TestPoint("submit.before");
        Replies replies = Attempt(tasks, &store::Store::Submit);
        base::TestPoint("submit.after");
        Signal(replies);
        return replies;
    } catch (const std::exception& error) {
        return Replies(tasks.size(), StoreFailure(error));
    }
}

Submitter::Replies Submitter::Attempt(std::vector<model::NewTask>& tasks, Sending send) {
    std::string why;
    try {
        Replies replies;
        replies.reserve(tasks.size());
        for (store::SubmitReply& reply : (store_.*send)(tasks)) {
            replies.push_back(ToResult(std::move(reply)));
        }
        CHECK(replies.size() == tasks.size());
        return replies;
    } catch (const store::CommitUnknown& error) {
        why = error.what();
    }
    ++metrics_.submits_unknown;
    log_.Warn("a commit's end is unknown; reading back", {{"error", why}});
    return ReadBack(tasks, send, why);
}

// One transaction: all of it happened or nothing. What is missing is sent again with the same ids,
// which cannot be taken twice.
Submitter::Replies Submitter::ReadBack(
    std::vector<model::NewTask>& tasks, Sending send, const std::string& why
) {
    if (base::Planted(base::Bug::kUnknownResubmitted)) {
        for (model::NewTask& task : tasks) {
            task.id = store_.ReserveIds(1);
            task.idempotency_key.clear();
        }
    }
    // A server that restarts is back within seconds; a caller who waits longer wants an answer.
    base::Instant end = clock_.Now() + model::limits::kReadBack;
    for (Duration pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
        try {
            return Repeat(tasks, send);
        } catch (const std::exception& error) {
            // Unavailable too: the first commit's end stays unknown until we have read it back.
            log_.Warn("reading back failed", {{"error", error.what()}});
        }
        auto jittered = static_cast<double>(pause.count()) * (0.5 + random_.Fraction());
        base::Instant next = clock_.Now() + Duration{static_cast<std::int64_t>(jittered)};
        if (next >= end) break;
        Pulse().Wait(clock_, {}, next);
    }
    Replies unknown;
    for (const model::NewTask& task : tasks) unknown.emplace_back(Unknown(task, why));
    return unknown;
}

Submitter::Replies Submitter::Repeat(std::span<const model::NewTask> tasks, Sending send) {
    Replies replies(tasks.size(), store::SubmitReply{});
    std::vector<std::size_t> missing;
    if (FoundAll(tasks, replies, missing)) return replies;
    std::vector<model::NewTask> again;
    for (std::size_t index : missing) again.push_back(tasks[index]);
    auto answers = (store_.*send)(again);
    CHECK(answers.size() == again.size());
    for (std::size_t k = 0; k < missing.size(); ++k) {
        replies[missing[k]] = ToResult(std::move(answers[k]));
    }
    return replies;
}

bool Submitter::FoundAll(
    std::span<const model::NewTask> tasks, Replies& replies, std::vector<std::size_t>& missing
) {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        store::SubmitReply reply;
        reply.id = tasks[i].id;
        auto record = store_.Get(tasks[i].id);
        if (!record) {
            // Not stored, or an older task stands for its key: sent again, the store says which.
            missing.push_back(i);
            continue;
        }
        reply.queue = record->queue;
        reply.due_now = record->state == model::State::kOpen;
        replies[i] = reply;
    }
    return missing.empty();
}

void Submitter::Signal(const Replies& replies) {
    std::vector<wake::Hint> hints;
    for (const auto& reply : replies) {
        if (!reply) continue;
        ++metrics_.submitted;
        if (!reply->due_now) continue;
        auto same_queue = [&](const wake::Hint& hint) { return hint.queue == reply->queue; };
        auto hint = std::find_if(hints.begin(), hints.end(), same_queue);
        if (hint == hints.end()) {
            hints.push_back({wake::Hint::Kind::kTaskAvailable, reply->queue, {}, reply->announced});
        } else {
            hint->others_know = hint->others_know && reply->announced;
        }
    }
    if (!hints.empty()) wake_.Signal(hints);
}

}  // namespace stint::engine
