// Group commit for small submits: while a transaction is on its way to the disk, the requests of
// other threads gather, and the next transaction takes them all. Whoever finds nobody leading,
// leads.
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
    };
    // Takes from the front of the line what fits one transaction. The caller holds the lock.
    std::vector<Request*> TakeGroup();
    void Lead(const std::vector<Request*>& group);
    void Alone(Request& request);

    const Work work_;
    const int leaders_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Request*> line_;  // guarded by mutex_, as is the next
    int leading_ = 0;
};

}  // namespace stint::store::pg
