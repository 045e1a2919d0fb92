// Group commit for small submits: while a transaction is on its way to the disk, the requests of
// other threads gather, and the next transaction takes them all. Whoever finds nobody leading,
// leads; where there are usually others it gives them a moment to come, since those whose turn has
// just ended come one after the other, and a transaction for each of them would cost more than the
// moment.
//
// Each caller gets the replies to its own tasks, or the failure of the transaction that held them.
// An error that one request may be to blame for is not shared: then each is tried by itself.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "store/store.h"

namespace stint::store::pg {

class GroupSubmit {
public:
    using Work = std::function<std::vector<SubmitReply>(std::span<const NewTask>)>;

    // `work` submits a batch in one transaction. `leaders` of them may be on their way at once.
    GroupSubmit(Work work, int leaders) : work_(std::move(work)), leaders_(leaders) {}

    std::vector<SubmitReply> Submit(std::span<const NewTask> tasks);

private:
    struct Request {
        std::span<const NewTask> tasks;
        std::vector<SubmitReply> replies;
        std::exception_ptr failure;
        bool done = false;
        std::condition_variable wake;  // of its caller alone: the others have nothing to do
    };
    // Takes from the front of the line what fits one transaction. The caller holds the lock.
    std::vector<Request*> TakeGroup();
    bool MayLead() const { return leading_ < leaders_ && !gathering_ && !line_.empty(); }
    // Lets those come who usually do, for a moment.
    void Gather(std::unique_lock<std::mutex>& lock);
    // Somebody may lead: the first in line is told. The caller holds the lock.
    void CallNext();
    void Lead(const std::vector<Request*>& group);
    void Alone(Request& request);

    const Work work_;
    const int leaders_;
    std::mutex mutex_;
    std::condition_variable gathered_;
    std::deque<Request*> line_;  // guarded by mutex_, as are the next
    int leading_ = 0;
    bool gathering_ = false;  // one of those that lead waits for others to come
    int inside_ = 0;          // callers
    double usual_ = 0;        // of them, at most, in the last while
};

}  // namespace stint::store::pg
