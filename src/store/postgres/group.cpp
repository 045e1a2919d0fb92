#include "store/postgres/group.h"

#include "base/test_point.h"
#include "store/postgres/db.h"

namespace stint::store::pg {

namespace {

constexpr std::size_t kTasksAtOnce = 1'000;
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
    base::TestPoint("store_postgres.lined_up");
    while (!mine.done) {
        if (leading_ >= leaders_ || line_.empty()) {
            changed_.wait(lock, [&] {
                return mine.done || (leading_ < leaders_ && !line_.empty());
            });
            continue;
        }
        std::vector<Request*> group = TakeGroup();
        ++leading_;
        lock.unlock();
        Lead(group);
        lock.lock();
        --leading_;
        for (Request* request : group) request->done = true;
        changed_.notify_all();
    }
    lock.unlock();
    if (mine.failure) std::rethrow_exception(mine.failure);
    return std::move(mine.replies);
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
