#include "store/postgres/group.h"

#include "base/test_point.h"
#include "store/postgres/db.h"

namespace stint::store::pg {

namespace {

constexpr std::size_t kTasksAtOnce = 1'000;
// How long a leader waits for others, and how fast it forgets how many there were.
constexpr auto kGatherFor = std::chrono::microseconds{150};
constexpr double kForget = 0.95;
// A batch of this size is worth a transaction of its own.
constexpr std::size_t kLarge = 100;

// Each gets an exception of its own: callers on other threads may look at theirs as long as they
// like.
template <class Requests, class Error>
void FailEach(const Requests& group, const Error& error) {
    for (auto* request : group) request->failure = std::make_exception_ptr(Error(error.what()));
}

}  // namespace

std::vector<SubmitReply> GroupSubmit::Submit(std::span<const NewTask> tasks) {
    if (tasks.size() >= kLarge) return work_(tasks);
    Request mine;
    mine.tasks = tasks;
    std::unique_lock lock(mutex_);
    line_.push_back(&mine);
    usual_ = std::max(usual_, static_cast<double>(++inside_));
    if (gathering_) gathered_.notify_one();
    base::TestPoint("store_postgres.lined_up");
    while (!mine.done) {
        if (!MayLead()) {
            mine.wake.wait(lock, [&] { return mine.done || MayLead(); });
            continue;
        }
        Gather(lock);
        std::vector<Request*> group = TakeGroup();
        ++leading_;
        CallNext();  // what did not fit
        lock.unlock();
        Lead(group);
        lock.lock();
        --leading_;
        for (Request* request : group) {
            request->done = true;
            // Under the lock: who sees that it is done takes the request away.
            if (request != &mine) request->wake.notify_one();
        }
        CallNext();
    }
    --inside_;
    lock.unlock();
    if (mine.failure) std::rethrow_exception(mine.failure);
    return std::move(mine.replies);
}

void GroupSubmit::Gather(std::unique_lock<std::mutex>& lock) {
    auto wanted = static_cast<std::size_t>(usual_ / leaders_);
    usual_ *= kForget;
    if (line_.size() >= wanted) return;
    gathering_ = true;
    gathered_.wait_for(lock, kGatherFor, [&] { return line_.size() >= wanted; });
    gathering_ = false;
}

void GroupSubmit::CallNext() {
    if (MayLead()) line_.front()->wake.notify_one();
}

std::vector<GroupSubmit::Request*> GroupSubmit::TakeGroup() {
    std::vector<Request*> group;
    std::size_t tasks = 0, bytes = 0;
    while (!line_.empty()) {
        Request* next = line_.front();
        tasks += next->tasks.size();
        for (const NewTask& task : next->tasks) bytes += task.input.size();
        bool fits = tasks <= kTasksAtOnce && bytes <= model::limits::kGroupBytes;
        if (!group.empty() && !fits) break;
        group.push_back(next);
        line_.pop_front();
    }
    return group;
}

void GroupSubmit::Lead(const std::vector<Request*>& group) {
    if (group.size() == 1) return Alone(*group.front());
    std::vector<NewTask> all;
    for (const Request* request : group) {
        all.insert(all.end(), request->tasks.begin(), request->tasks.end());
    }
    try {
        std::vector<SubmitReply> replies = work_(all);
        auto next = std::make_move_iterator(replies.begin());
        for (Request* request : group) {
            auto end = next + static_cast<std::ptrdiff_t>(request->tasks.size());
            request->replies.assign(next, end);
            next = end;
        }
    } catch (const LockHeld&) {
        // By whom only some of them are to wait for.
        for (Request* request : group) Alone(*request);
    } catch (const Unavailable& error) {
        FailEach(group, error);
    } catch (const CommitUnknown& error) {
        FailEach(group, error);
    } catch (const std::exception&) {
        // Nothing was stored, and only one of them may be to blame.
        for (Request* request : group) Alone(*request);
    }
}

void GroupSubmit::Alone(Request& request) {
    try {
        request.replies = work_(request.tasks);
    } catch (const std::exception&) {
        request.failure = std::current_exception();
    }
}

}  // namespace stint::store::pg
