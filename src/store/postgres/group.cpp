#include "store/postgres/group.h"

#include <algorithm>

#include "base/test_point.h"
#include "store/postgres/db.h"

namespace stint::store::pg {

namespace {

constexpr std::size_t kTasksAtOnce = 1'000;
// How long a leader waits for others without one coming, and how fast it forgets how many there
// were.
constexpr auto kGatherFor = std::chrono::microseconds{150};
constexpr auto kGatherMost = std::chrono::milliseconds{2};
constexpr double kForget = 0.95;
// Of what is learned about how long a transaction takes, before it is late.
constexpr base::Instant::duration kLearned = std::chrono::milliseconds{100};
// So many tasks are worth a transaction of their own.
constexpr std::size_t kLarge = 100;

// Each gets an exception of its own: callers on other threads may look at theirs as long as they
// like.
template <class Requests, class Error>
void FailEach(const Requests& group, const Error& error) {
    for (const auto& request : group)
        request->failure = std::make_exception_ptr(Error(error.what()));
}

}  // namespace

void GroupSubmit::Request::Tell(State news) {
    std::lock_guard guard(mutex_);
    state_ = news;
    told_.notify_one();
}

GroupSubmit::Request::State GroupSubmit::Request::Hear(Duration patience) {
    std::unique_lock lock(mutex_);
    told_.wait_for(lock, patience, [&] { return state_ != State::kWaits; });
    return state_;
}

std::vector<SubmitReply> GroupSubmit::Submit(std::span<const NewTask> tasks) {
    if (tasks.size() >= kLarge) return work_(tasks);
    auto mine = std::make_shared<Request>();
    mine->tasks = tasks;
    RequestPtr leader;
    {
        std::lock_guard guard(mutex_);
        line_.push_back(mine);
        tasks_in_line_ += tasks.size();
        usual_ = std::max(usual_, static_cast<double>(++inside_));
        if (wanted_ > 0 && line_.size() >= wanted_) gathered_.notify_one();
        leader = Appoint();
    }
    base::TestPoint("store_postgres.lined_up");
    if (leader) leader->Tell(Request::State::kLeads);
    Request::State heard = mine->Hear(late_);
    for (; heard == Request::State::kWaits; heard = mine->Hear(late_)) CheckLate();
    // Whoever leads is the first in line, and so in the group that it takes.
    if (heard == Request::State::kLeads) LeadOnce(*mine);
    {
        std::lock_guard guard(mutex_);
        --inside_;
    }
    if (mine->failure) std::rethrow_exception(mine->failure);
    return std::move(mine->replies);
}

GroupSubmit::RequestPtr GroupSubmit::Appoint() {
    if (line_.empty() || choosing_ || leading_ >= leaders_) return nullptr;
    if (leading_ > 0 && !SecondIsWorthIt()) return nullptr;
    ++leading_;
    choosing_ = true;
    line_.front()->led_since = base::SystemClock().Now();
    led_since_.push_back(line_.front()->led_since);
    return line_.front();
}

void GroupSubmit::CheckLate() {
    std::unique_lock lock(mutex_);
    RequestPtr second = Appoint();
    lock.unlock();
    if (second) second->Tell(Request::State::kLeads);
}

base::Instant::duration GroupSubmit::Late() const {
    return std::max<base::Instant::duration>(late_, std::min(4 * trip_, kLearned));
}

bool GroupSubmit::SecondIsWorthIt() const {
    if (tasks_in_line_ >= kLarge) return true;
    return base::SystemClock().Now() - std::ranges::min(led_since_) > Late();
}

void GroupSubmit::LeadOnce(const Request& leader) {
    std::unique_lock lock(mutex_);
    Gather(lock);
    std::vector<RequestPtr> group = TakeGroup();
    choosing_ = false;
    RequestPtr second = Appoint();  // for what did not fit
    lock.unlock();
    if (second) second->Tell(Request::State::kLeads);

    const base::Instant begun = base::SystemClock().Now();
    SubmitAll(group);

    lock.lock();
    --leading_;
    led_since_.erase(std::ranges::find(led_since_, leader.led_since));
    // How long one was held up says nothing of how long one takes.
    base::Instant::duration took = base::SystemClock().Now() - begun;
    trip_ += (std::min(took, Late()) - trip_) / 4;
    RequestPtr next = Appoint();
    lock.unlock();
    if (next) next->Tell(Request::State::kLeads);
    for (const RequestPtr& request : group) request->Tell(Request::State::kDone);
}

void GroupSubmit::Gather(std::unique_lock<std::mutex>& lock) {
    wanted_ = static_cast<std::size_t>(usual_);
    usual_ *= kForget;
    // As long as they come, and not longer than it takes to be back for the rest: half of them now
    // and half then would wait for two transactions where one is enough.
    base::Clock& clock = base::SystemClock();
    const base::Instant until = clock.Now() + std::min<base::Instant::duration>(trip_, kGatherMost);
    auto all = [&] { return line_.size() >= wanted_; };
    for (std::size_t there = 0; !all() && line_.size() > there;) {
        there = line_.size();
        gathered_.wait_for(lock, kGatherFor, all);
        if (clock.Now() >= until) break;
    }
    wanted_ = 0;
}

std::vector<GroupSubmit::RequestPtr> GroupSubmit::TakeGroup() {
    std::vector<RequestPtr> group;
    std::size_t tasks = 0, bytes = 0;
    while (!line_.empty()) {
        const RequestPtr& next = line_.front();
        tasks += next->tasks.size();
        for (const NewTask& task : next->tasks) bytes += task.input.size();
        bool fits = tasks <= kTasksAtOnce && bytes <= model::limits::kGroupBytes;
        if (!group.empty() && !fits) break;
        tasks_in_line_ -= next->tasks.size();
        group.push_back(next);
        line_.pop_front();
    }
    return group;
}

void GroupSubmit::SubmitAll(const std::vector<RequestPtr>& group) {
    if (group.size() == 1) return Alone(*group.front());
    try {
        std::vector<NewTask> all;
        for (const RequestPtr& request : group) {
            all.insert(all.end(), request->tasks.begin(), request->tasks.end());
        }
        std::vector<SubmitReply> replies = work_(all);
        auto next = std::make_move_iterator(replies.begin());
        for (const RequestPtr& request : group) {
            auto end = next + static_cast<std::ptrdiff_t>(request->tasks.size());
            request->replies.assign(next, end);
            next = end;
        }
    } catch (const LockHeld&) {
        // By whom only some of them are to wait for.
        for (const RequestPtr& request : group) Alone(*request);
    } catch (const Unavailable& error) {
        FailEach(group, error);
    } catch (const CommitUnknown& error) {
        FailEach(group, error);
    } catch (const std::exception&) {
        // Nothing was stored, and only one of them may be to blame.
        for (const RequestPtr& request : group) Alone(*request);
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
