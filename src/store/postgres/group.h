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
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/clock.h"
#include "store/store.h"

namespace stint::store::pg {

class GroupSubmit {
public:
    using Work = std::function<std::vector<SubmitReply>(std::span<const NewTask>)>;

    // `work` submits a batch in one transaction. `leaders` of them may be on their way at once;
    // more than one only if much waits, or the one that is on its way takes far longer than usual:
    // two half groups cost nearly twice as much as a whole one, and wait for the disk one after the
    // other. `late`: what takes so long, and far longer than usual, may take longer still.
    GroupSubmit(Work work, int leaders, Duration late = std::chrono::milliseconds{20})
        : work_(std::move(work)), leaders_(leaders), late_(late) {}

    std::vector<SubmitReply> Submit(std::span<const NewTask> tasks);

private:
    // Of one caller, which sleeps on a lock of its own: those that are done at the same time do not
    // wake up to wait for each other.
    struct Request {
        enum class State : std::uint8_t { kWaits, kLeads, kDone };
        void Tell(State news);
        // Sleeps until there is news; kWaits: for so long there was none.
        State Hear(Duration patience);

        std::span<const NewTask> tasks;
        std::vector<SubmitReply> replies;
        std::exception_ptr failure;
        base::Instant led_since{};  // guarded by the group's lock

    private:
        std::mutex mutex_;
        std::condition_variable told_;
        State state_ = State::kWaits;  // guarded by mutex_
    };
    using RequestPtr = std::shared_ptr<Request>;

    // The caller holds the lock, as with the next. Null: nobody is to lead now; else it is to be
    // told that it does.
    RequestPtr Appoint();
    bool SecondIsWorthIt() const;
    base::Instant::duration Late() const;
    void CheckLate();  // by one that waits: whether another is to lead beside the one that is late
    // Takes from the front of the line what fits one transaction.
    std::vector<RequestPtr> TakeGroup();
    // Lets those come who usually do, for a moment.
    void Gather(std::unique_lock<std::mutex>& lock);
    void LeadOnce(const Request& leader);
    void SubmitAll(const std::vector<RequestPtr>& group);
    void Alone(Request& request);

    const Work work_;
    const int leaders_;
    const Duration late_;
    std::mutex mutex_;
    std::condition_variable gathered_;
    std::deque<RequestPtr> line_;  // guarded by mutex_, as are the next
    std::size_t tasks_in_line_ = 0;
    int leading_ = 0;
    bool choosing_ = false;                 // whoever was appointed has not taken its group yet
    std::size_t wanted_ = 0;                // by the one that gathers; 0: none does
    int inside_ = 0;                        // callers
    double usual_ = 0;                      // of them, at most, in the last while
    std::vector<base::Instant> led_since_;  // of those that lead
    base::Instant::duration trip_{0};       // how long one takes, smoothed
};

}  // namespace stint::store::pg
