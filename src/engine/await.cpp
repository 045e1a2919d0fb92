#include "engine/await.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "engine/store_failure.h"
#include "model/limits.h"
#include "store/finished.h"

namespace stint::engine {

namespace {

constexpr Duration kLongestSleep = std::chrono::minutes{10};

Error Closed() {
    return {Code::kUnavailable, "the engine is closed"};
}

}  // namespace

Await::Await(
    store::Store& store,
    wake::Wake& wake,
    base::Clock& clock,
    base::Random& random,
    PollOptions poll,
    LogSink log
)
    : store_(store),
      wake_(wake),
      clock_(clock),
      random_(random),
      poll_(poll),
      log_(std::move(log), "await"),
      interval_(poll.min) {
    subscription_ = wake_.Subscribe([this](const wake::Hint& hint) { Hear(hint); });
}

Await::~Await() {
    Close();
}

void Await::Close() {
    {
        std::unique_lock lock(mutex_);
        if (closed_) return;
        closed_ = true;
        changed_.notify_all();
        changed_.wait(lock, [this] { return inside_ == 0; });
    }
    wake_.Unsubscribe(subscription_);
}

Await::Inside::Inside(Await& await) : await_(await) {
    std::lock_guard guard(await_.mutex_);
    open_ = !await_.closed_;
    if (open_) ++await_.inside_;
}

Await::Inside::~Inside() {
    if (!open_) return;
    std::lock_guard guard(await_.mutex_);
    --await_.inside_;
    await_.changed_.notify_all();
}

bool Await::Done(TaskId task) {
    Inside inside(*this);
    if (!inside) return false;
    try {
        return !store_.Finished(std::span(&task, 1)).empty();
    } catch (const std::exception& error) {
        log_.Debug("cannot tell whether a task is done", {{"error", error.what()}});
        return false;
    }
}

Result<std::string> Await::Wait(TaskId task, std::optional<Duration> limit, std::stop_token stop) {
    Inside inside(*this);
    if (!inside) return Closed();
    base::Instant end = base::Instant::max();
    if (limit) end = clock_.Now() + std::min<Duration>(*limit, model::limits::kTimeoutMax);
    std::optional<Answer> answer = Enter(task);
    if (answer) return *answer;
    for (;;) {
        base::Instant now = clock_.Now();
        std::unique_lock lock(mutex_);
        answer = Look(task);
        if (!answer && closed_) answer = Closed();
        if (!answer && now >= end) {
            answer =
                away_
                    ? base::MakeError(Code::kUnavailable, "the store cannot be reached")
                    : base::MakeError(Code::kTimeout, "task {} is not finished yet", task.value());
        }
        if (!answer && stop.stop_requested()) {
            answer =
                base::MakeError(Code::kCancelled, "the wait for task {} was stopped", task.value());
        }
        if (answer) break;
        if (!polling_ && now >= poll_at_) {
            Poll(lock);
        } else {
            base::Instant until = std::min(end, now + kLongestSleep);
            if (!polling_) until = std::min(until, poll_at_);
            clock_.WaitUntil(lock, changed_, stop, until);
        }
    }
    Leave(task);
    return *answer;
}

std::optional<Await::Answer> Await::Enter(TaskId task) {
    std::lock_guard guard(mutex_);
    if (entries_.size() >= model::limits::kWaitingHandles && !entries_.contains(task)) {
        return base::MakeError(
            Code::kLimit, "{} tasks are waited for already", model::limits::kWaitingHandles
        );
    }
    Entry& entry = entries_[task];
    ++entry.waiters;
    poll_at_ = {};  // it may be finished already
    interval_ = poll_.min;
    return std::nullopt;
}

void Await::Leave(TaskId task) {
    {
        std::lock_guard guard(mutex_);
        auto entry = entries_.find(task);
        CHECK(entry != entries_.end());
        if (--entry->second.waiters == 0) entries_.erase(entry);
    }
    changed_.notify_all();  // another thread may have to do the asking now
}

// REQUIRES: mutex_ is held.
std::optional<Await::Answer> Await::Look(TaskId task) const {
    const Entry& entry = entries_.at(task);
    if (entry.finished) return ToAnswer(*entry.finished);
    if (entry.missing) return base::MakeError(Code::kNotFound, "there is no task {}", task.value());
    return std::nullopt;
}

// REQUIRES: the lock is held; gives it up while asking.
void Await::Poll(std::unique_lock<std::mutex>& lock) {
    polling_ = true;
    Duration interval = interval_;
    interval_ = std::min(interval_ * 2, poll_.max);
    // A hint that comes while we ask sets it back to "at once".
    poll_at_ = base::Instant::max();
    bool away = false;
    try {
        Ask(lock);
    } catch (const std::exception& error) {
        if (!lock.owns_lock()) lock.lock();
        away = true;
        log_.Debug("the store cannot be asked", {{"error", error.what()}});
    }
    lock.unlock();
    double share = 0.8 + 0.4 * random_.Fraction();
    base::Instant next =
        clock_.Now() +
        Duration{std::max<std::int64_t>(
            1, static_cast<std::int64_t>(static_cast<double>(interval.count()) * share)
        )};
    lock.lock();
    away_ = away;
    polling_ = false;
    poll_at_ = std::min(poll_at_, next);
    lock.unlock();
    changed_.notify_all();
}

void Await::Ask(std::unique_lock<std::mutex>& lock) {
    std::vector<TaskId> open;
    std::vector<TaskId> unknown;
    for (const auto& [task, entry] : entries_) {
        if (entry.finished || entry.missing) continue;
        open.push_back(task);
        if (!entry.known) unknown.push_back(task);
    }
    lock.unlock();
    std::vector<store::FinishedTask> finished;
    store::EachFinished(
        open,
        [&](auto some) { return store_.Finished(some); },
        [&](store::FinishedTask one) { finished.push_back(std::move(one)); }
    );
    std::vector<TaskId> missing;
    for (TaskId task : unknown) {
        auto same = [&](const store::FinishedTask& one) { return one.id == task; };
        if (std::any_of(finished.begin(), finished.end(), same)) continue;
        if (!store_.Get(task)) missing.push_back(task);
    }
    lock.lock();
    for (store::FinishedTask& one : finished) {
        auto entry = entries_.find(one.id);
        if (entry != entries_.end()) entry->second.finished = std::move(one);
    }
    for (TaskId task : missing) {
        auto entry = entries_.find(task);
        if (entry != entries_.end()) entry->second.missing = true;
    }
    for (TaskId task : unknown) {
        auto entry = entries_.find(task);
        if (entry != entries_.end()) entry->second.known = true;
    }
}

void Await::Hear(const wake::Hint& hint) {
    if (hint.kind != wake::Hint::Kind::kTaskFinished) return;
    {
        std::lock_guard guard(mutex_);
        // Without an id it may be any of them.
        if (hint.task.valid() ? !entries_.contains(hint.task) : entries_.empty()) return;
        poll_at_ = {};
        interval_ = poll_.min;
    }
    changed_.notify_all();
}

Result<Cancelled> ToCancelled(TaskId task, const store::CancelReply& reply) {
    if (reply.kind == store::CancelReply::Kind::kNotFound) {
        return base::MakeError(Code::kNotFound, "there is no task {}", task.value());
    }
    bool stopped = reply.kind != store::CancelReply::Kind::kAlreadyTerminal;
    return Cancelled{.stopped = stopped, .descendants = reply.descendants};
}

Result<Cancelled> Await::Cancel(TaskId task, std::string_view reason) {
    Inside inside(*this);
    if (!inside) return Closed();
    try {
        auto replies = store_.Cancel(std::span(&task, 1), "host", reason);
        CHECK(replies.size() == 1);
        const store::CancelReply& reply = replies.front();
        if (reply.kind == store::CancelReply::Kind::kCancelled) {
            wake::Hint hint{wake::Hint::Kind::kTaskFinished, {}, task};
            wake_.Signal(std::span(&hint, 1));
        }
        return ToCancelled(task, reply);
    } catch (const std::exception& error) {
        return StoreFailure(error);
    }
}

Await::Answer Await::ToAnswer(const store::FinishedTask& finished) {
    switch (finished.state) {
        case model::State::kComplete:
            return finished.output;
        case model::State::kCancelled:
            return Error{Code::kCancelled, finished.reason.empty() ? "cancelled" : finished.reason};
        default:
            return Error{Code::kFailed, finished.error ? finished.error->message : finished.reason};
    }
}

int Await::waiting() const {
    std::lock_guard guard(mutex_);
    return static_cast<int>(entries_.size());
}

}  // namespace stint::engine
