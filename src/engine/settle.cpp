#include "engine/settle.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/check.h"
#include "base/planted_bug.h"
#include "base/result.h"
#include "base/test_point.h"
#include "engine/text.h"
#include "model/limits.h"

namespace stint::engine {

namespace {

using Kind = store::Settlement::Kind;

constexpr Duration kBusyDelay = std::chrono::seconds{1};

// The settlements of the reports, as the store takes them; the reports have theirs back afterwards,
// whatever happens.
class Lent {
public:
    explicit Lent(std::vector<Report>& reports) : reports_(reports) {
        lent_.reserve(reports.size());
        for (Report& report : reports) lent_.push_back(std::move(report.settlement));
    }
    ~Lent() {
        for (std::size_t i = 0; i < lent_.size(); ++i) {
            reports_[i].settlement = std::move(lent_[i]);
        }
    }
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;

    std::span<const store::Settlement> all() const { return lent_; }

private:
    std::vector<Report>& reports_;
    std::vector<store::Settlement> lent_;
};

std::vector<store::SettleReply> Settle(store::Store& store, std::vector<Report>& reports) {
    return store.Settle(Lent(reports).all());
}

model::Event EventOf(Kind kind, model::State to) {
    if (to == model::State::kCancelled) return model::Event::kCancel;
    switch (kind) {
        case Kind::kComplete:
            // Its items may have said otherwise.
            if (to == model::State::kError) return model::Event::kFailRetryable;
            if (to == model::State::kDead) return model::Event::kFailFinal;
            return model::Event::kComplete;
        case Kind::kRetry:
            return model::Event::kFailRetryable;
        case Kind::kDead:
            return model::Event::kFailFinal;
        case Kind::kSnooze:
            return model::Event::kSnooze;
        case Kind::kRelease:
            return model::Event::kRelease;
        case Kind::kBackground:
            return model::Event::kBackground;
        case Kind::kCancelled:
            return model::Event::kCancel;
        case Kind::kBlocked:
            return model::Event::kBlock;
    }
    return model::Event::kComplete;
}

}  // namespace

Settler::Settler(
    const Parts& parts, store::Store* reserved, std::string state_dir, const SafeHooks& hooks
)
    : parts_(parts.For("settle")),
      reserved_(reserved),
      hooks_(hooks),
      spool_(std::move(state_dir), parts_.log) {
}

void Settler::Push(Report report, Ran trace) {
    {
        std::lock_guard guard(mutex_);
        if (trace.ran) {
            const store::Settlement& s = report.settlement;
            traces_[s.token] = {s.task, s.session, std::move(trace)};
        }
        queue_.push_back(std::move(report));
    }
    if (pushed_) pushed_();
}

int Settler::size() const {
    std::lock_guard guard(mutex_);
    return static_cast<int>(queue_.size() + on_the_way_.size());
}

bool Settler::next_is_success() const {
    std::lock_guard guard(mutex_);
    return !queue_.empty() && queue_.front().settlement.kind == Kind::kComplete;
}

bool Settler::Holds(SessionId session) const {
    if (!spool_.empty()) return true;  // whose they are is not worth remembering
    std::lock_guard guard(mutex_);
    auto of_session = [&](const Report& report) { return report.settlement.session == session; };
    return std::find(on_the_way_.begin(), on_the_way_.end(), session) != on_the_way_.end() ||
           std::any_of(queue_.begin(), queue_.end(), of_session);
}

std::vector<TaskId> Settler::RanUnsettled(SessionId session) const {
    std::vector<TaskId> tasks;
    std::lock_guard guard(mutex_);
    for (const auto& [token, trace] : traces_) {
        if (trace.session == session) tasks.push_back(trace.task);
    }
    return tasks;
}

// The store knows how it ended, or that it is no longer ours.
void Settler::Forget(const store::Settlement& settlement) {
    std::lock_guard guard(mutex_);
    auto trace = traces_.find(settlement.token);
    if (trace == traces_.end()) return;
    if (trace->second.ran.flight) trace->second.ran.flight->End(trace->second.ran.flight_slot);
    traces_.erase(trace);
}

bool Settler::idle() const {
    return size() == 0 && spool_.empty();
}

bool Settler::Due(base::Instant now) const {
    if (!spool_.empty() && replay_at_ <= now) return true;
    return std::any_of(queue_.begin(), queue_.end(), [&](const Report& report) {
        return report.not_before <= now;
    });
}

bool Settler::sending() const {
    std::lock_guard guard(mutex_);
    return busy_;
}

base::Instant Settler::next_try() const {
    std::lock_guard guard(mutex_);
    base::Instant next = spool_.empty() ? base::Instant::max() : replay_at_;
    for (const Report& report : queue_) {
        next = std::min(next, report.not_before);
        if (next == base::Instant{}) break;  // at once: nothing is earlier
    }
    return next;
}

std::vector<Report> Settler::Take() {
    base::Instant now = parts_.clock.Now();
    std::lock_guard guard(mutex_);
    const auto most = static_cast<std::size_t>(model::limits::kSettleBatch);
    std::vector<Report> taken, not_yet;
    taken.reserve(std::min(queue_.size(), most));
    while (!queue_.empty() && taken.size() < most) {
        Report& report = queue_.front();
        if (report.not_before > now) {
            not_yet.push_back(std::move(report));
        } else {
            on_the_way_.push_back(report.settlement.session);
            taken.push_back(std::move(report));
        }
        queue_.pop_front();
    }
    queue_.insert(
        queue_.begin(),
        std::make_move_iterator(not_yet.begin()),
        std::make_move_iterator(not_yet.end())
    );
    return taken;
}

void Settler::PutBack(std::vector<Report> reports) {
    std::lock_guard guard(mutex_);
    queue_.insert(
        queue_.begin(),
        std::make_move_iterator(reports.begin()),
        std::make_move_iterator(reports.end())
    );
}

bool Settler::Once() {
    {
        std::lock_guard guard(mutex_);
        if (busy_ || !Due(parts_.clock.Now())) return false;
        busy_ = true;
    }
    std::vector<Report> batch;
    try {
        ReplaySpool();
        batch = Take();
        if (!batch.empty()) Send(batch);
        KeepRefused(std::move(batch));
    } catch (const std::exception&) {
        // What is not concluded goes back or to the spool.
        if (!batch.empty()) Secure(std::move(batch));
        Leave();
        throw;
    }
    Leave();
    return true;
}

// The next may begin while the hints of this one are on their way: they are taken first.
void Settler::Leave() {
    std::vector<wake::Hint> hints;
    {
        std::lock_guard guard(mutex_);
        hints.swap(hints_);
        busy_ = false;
        on_the_way_.clear();
    }
    free_.notify_all();
    if (!hints.empty()) parts_.wake.Signal(hints);
}

// Removes from `reports` what is concluded, and leaves what was refused; throws with the rest left
// in it.
void Settler::Send(std::vector<Report>& reports) {
    base::TestPoint("settle.before");
    Resolve(reports);
    if (reports.empty()) return;
    ++parts_.metrics.settles;
    try {
        ConcludeAll(reports, Settle(parts_.store, reports));
    } catch (const store::CommitUnknown&) {
        ++parts_.metrics.settles_unknown;
        for (Report& report : reports) {
            report.uncertain = true;
            if (base::Planted(base::Bug::kUnknownIsFailure)) {
                report.uncertain = false;
                report.settlement.kind = Kind::kDead;
                report.settlement.end = model::AttemptEnd::kFailed;
                report.settlement.reason = "the commit's end is unknown";
                report.settlement.error = model::TaskError{"unknown commit", "store", {}, false};
            }
        }
        throw;
    } catch (const store::Unavailable&) {
        if (SendReserved(reports)) return;
        throw;
    } catch (const store::Unstorable& error) {
        parts_.log.Warn("a batch was refused as a whole; one by one", {{"error", error.what()}});
        SendOneByOne(reports);
    } catch (const std::exception& error) {
        parts_.log.Warn("a batch was refused as a whole; one by one", {{"error", error.what()}});
        // Who fails for a reason we do not know may have failed after the commit.
        for (Report& report : reports) report.uncertain = true;
        Resolve(reports);
        SendOneByOne(reports);
    }
    base::TestPoint("settle.after");
}

// Those whose end is unknown: the token tells.
void Settler::Resolve(std::vector<Report>& reports) {
    std::vector<Report> left;
    left.reserve(reports.size());
    for (std::size_t i = 0; i < reports.size(); ++i) {
        Report& report = reports[i];
        if (!report.uncertain || base::Planted(base::Bug::kSpoolUnfenced)) {
            left.push_back(std::move(report));
            continue;
        }
        std::optional<store::SettleReply> known;
        try {
            known = parts_.store.SettledBy(report.settlement.task, report.settlement.token);
        } catch (const std::exception&) {
            left.insert(
                left.end(),
                std::make_move_iterator(reports.begin() + static_cast<std::ptrdiff_t>(i)),
                std::make_move_iterator(reports.end())
            );
            reports = std::move(left);
            throw;
        }
        if (known) {
            Conclude(report, *known);
        } else {
            report.uncertain = false;  // still ours, not stored: send it
            left.push_back(std::move(report));
        }
    }
    reports = std::move(left);
}

bool Settler::SendReserved(std::vector<Report>& reports) {
    if (reserved_ == nullptr) return false;
    try {
        std::size_t count = reports.size();
        ConcludeAll(reports, Settle(*reserved_, reports));
        parts_.metrics.settled_by_reserve += count - reports.size();
        return true;
    } catch (const store::CommitUnknown&) {
        for (Report& report : reports) report.uncertain = true;
        return false;
    } catch (const std::exception& error) {
        parts_.log.Warn("the reserved connection failed too", {{"error", error.what()}});
        return false;
    }
}

// One outcome that the store does not take must not hold up the others.
void Settler::SendOneByOne(std::vector<Report>& reports) {
    std::vector<Report> refused;
    try {
        while (!reports.empty()) {
            Report& report = reports.back();
            try {
                if (!SendAlone(report)) refused.push_back(std::move(report));
            } catch (const store::CommitUnknown&) {
                report.uncertain = true;
                throw;
            } catch (const store::Unavailable&) {
                throw;
            } catch (const std::exception& error) {
                if (Refused(report, error.what())) refused.push_back(std::move(report));
            }
            reports.pop_back();
        }
    } catch (const std::exception&) {
        std::move(refused.begin(), refused.end(), std::back_inserter(reports));
        throw;
    }
    reports = std::move(refused);
}

// False: it is for later.
bool Settler::SendAlone(Report& report) {
    try {
        auto replies = parts_.store.Settle(std::span(&report.settlement, 1));
        CHECK(replies.size() == 1);
        return Conclude(report, replies.front());
    } catch (const store::Unstorable& error) {
        return SendUnstorable(report, error.what());
    }
}

// The outcome itself cannot be stored: say so in plain ASCII, which can.
bool Settler::SendUnstorable(Report& report, const std::string& why) {
    store::Settlement& s = report.settlement;
    parts_.log.Error(
        "the store cannot take an outcome", {{"task", s.task.ToString()}, {"error", why}}
    );
    store::Settlement plain;
    plain.task = s.task;
    plain.token = s.token;
    plain.session = s.session;
    plain.kind = Kind::kDead;
    plain.end = model::AttemptEnd::kFailed;
    plain.reason = "its outcome could not be stored";
    plain.error = model::TaskError{
        CutText(PrintableAscii("the outcome could not be stored: " + why), 512),
        "outcome",
        {},
        false};
    s = std::move(plain);
    try {
        auto replies = parts_.store.Settle(std::span(&s, 1));
        CHECK(replies.size() == 1);
        return Conclude(report, replies.front());
    } catch (const store::Unstorable& error) {
        GiveUp(s, error.what());
        return true;
    }
}

// The store works, or does not say that it does not, and refuses this one all the same. True: it
// is kept for another try.
bool Settler::Refused(Report& report, const std::string& why) {
    const store::Settlement& s = report.settlement;
    if (++report.refusals >= model::limits::kSettleRefusals) {
        GiveUp(s, why);
        return false;
    }
    Duration wait = model::limits::kRefusalDelay;
    for (int i = 1; i < report.refusals && wait < model::limits::kRefusalDelayMax; ++i) wait *= 2;
    report.not_before = parts_.clock.Now() + std::min(wait, model::limits::kRefusalDelayMax);
    report.uncertain = true;
    parts_.log.Error(
        "the store refused an outcome; it is kept and tried again",
        {{"task", s.task.ToString()},
         {"refusals", std::to_string(report.refusals)},
         {"given_up_after", std::to_string(model::limits::kSettleRefusals)},
         {"error", why}}
    );
    return true;
}

// Its lease ends with its session. The trace stays, so that whoever recovers the task knows that it
// ran, and a task whose outcome never arrives is quarantined in the end.
void Settler::GiveUp(const store::Settlement& settlement, const std::string& why) {
    parts_.log.Error(
        "an outcome is given up; its lease is left to end and the task comes back",
        {{"task", settlement.task.ToString()}, {"error", why}}
    );
    {
        std::lock_guard guard(mutex_);
        given_up_traces_.push_back(settlement.token);
        if (given_up_traces_.size() > static_cast<std::size_t>(model::limits::kGivenUpKept)) {
            traces_.erase(given_up_traces_.front());
            given_up_traces_.pop_front();
        }
    }
    if (given_up_) given_up_(settlement.session);
}

// Leaves what is for later.
void Settler::ConcludeAll(
    std::vector<Report>& reports, const std::vector<store::SettleReply>& replies
) {
    CHECK(replies.size() == reports.size());
    std::vector<Report> later;
    for (std::size_t i = 0; i < replies.size(); ++i) {
        if (!Conclude(reports[i], replies[i])) later.push_back(std::move(reports[i]));
    }
    reports = std::move(later);
}

bool Settler::Conclude(Report& report, const store::SettleReply& reply) {
    switch (reply.kind) {
        case store::SettleReply::Kind::kBusy:
            Postpone(report, reply);
            return false;
        case store::SettleReply::Kind::kRefused:
            FailInstead(report, reply);
            return true;
        case store::SettleReply::Kind::kLost:
            Forget(report.settlement);
            Lost(report);
            return true;
        case store::SettleReply::Kind::kAccepted:
            Forget(report.settlement);
            Accepted(report, reply);
            return true;
    }
    return true;
}

// Somebody's transaction is in its way. Others pass it by.
void Settler::Postpone(Report& report, const store::SettleReply& reply) {
    ++parts_.metrics.postponed;
    report.not_before = parts_.clock.Now() + kBusyDelay;
    parts_.log.Warn(
        "an outcome has to wait for another transaction; it is tried again",
        {{"task", report.settlement.task.ToString()}, {"error", reply.message}}
    );
}

void Settler::Accepted(const Report& report, const store::SettleReply& reply) {
    const store::Settlement& s = report.settlement;
    Metrics& metrics = parts_.metrics;
    switch (reply.state) {
        case model::State::kComplete:
            ++metrics.completed;
            break;
        case model::State::kError:
            ++metrics.retried;
            break;
        case model::State::kDead:
            ++metrics.failed;
            break;
        case model::State::kCancelled:
            ++metrics.cancelled;
            break;
        case model::State::kBackground:
            ++metrics.backgrounded;
            break;
        case model::State::kBlocked:
            ++metrics.blocked;
            break;
        default:
            ++(s.kind == Kind::kSnooze ? metrics.snoozed : metrics.released);
            break;
    }
    if (model::IsTerminal(reply.state)) {
        hints_.push_back({wake::Hint::Kind::kTaskFinished, {}, s.task});
    } else if (reply.state == model::State::kOpen && s.delay == Duration::zero()) {
        hints_.push_back({wake::Hint::Kind::kTaskAvailable, report.queue, {}});
    }
    std::set<std::string> queues(reply.opened.begin(), reply.opened.end());
    if (report.frees) queues.insert(report.queue);
    for (const model::NewTask& child : s.children) queues.insert(child.queue.value_or(""));
    for (const std::string& queue : queues) {
        hints_.push_back({wake::Hint::Kind::kTaskAvailable, queue, {}});
    }
    hooks_.Transition(s.task, model::State::kInProgress, reply.state, EventOf(s.kind, reply.state));
}

// What the attempt wanted to wait for cannot be made: it has failed, and its policy decides.
void Settler::FailInstead(Report& report, const store::SettleReply& reply) {
    ++parts_.metrics.refused;
    parts_.log.Error(
        "a wait was refused; the attempt has failed",
        {{"task", report.settlement.task.ToString()}, {"error", reply.message}}
    );
    if (!report.if_refused) return GiveUp(report.settlement, "a wait was refused");
    Report instead{.settlement = std::move(*report.if_refused), .queue = report.queue};
    instead.settlement.error->message =
        CutText("a wait was refused: " + reply.message, model::limits::kErrorMessage);
    Push(std::move(instead));
}

void Settler::Lost(Report& report) {
    ++parts_.metrics.lost;
    parts_.log.Warn(
        "stale write rejected: the lease was lost before the outcome arrived",
        {{"task", report.settlement.task.ToString()}, {"token", report.settlement.token.ToString()}}
    );
}

// The store failed: the outcomes must survive us. In the spool if there is one, else in memory.
void Settler::Secure(std::vector<Report> reports) {
    if (spool_.Append(reports)) {
        parts_.metrics.spooled += reports.size();
        parts_.log.Warn(
            "the store is away; outcomes are spooled", {{"count", std::to_string(reports.size())}}
        );
        std::lock_guard guard(mutex_);
        replay_at_ = {};  // as soon as it answers, whatever else the spool holds
        return;
    }
    PutBack(std::move(reports));
}

// Refused, while the store takes others: kept as safely as if it were away.
void Settler::KeepRefused(std::vector<Report> reports) {
    if (reports.empty()) return;
    base::Instant first = base::Instant::max();
    for (const Report& report : reports) first = std::min(first, report.not_before);
    if (spool_.Append(reports)) {
        parts_.metrics.spooled += reports.size();
        std::lock_guard guard(mutex_);
        replay_at_ = std::max(replay_at_, first);
        return;
    }
    PutBack(std::move(reports));
}

void Settler::ReplaySpool() {
    base::Instant now = parts_.clock.Now();
    {
        std::lock_guard guard(mutex_);
        if (spool_.empty() || replay_at_ > now) return;
    }
    std::vector<Report> refused = Replay(spool_.Read());
    spool_.Clear();
    KeepRefused(std::move(refused));
}

// Returns those that were refused.
std::vector<Report> Settler::Replay(std::vector<Report> reports) {
    std::vector<Report> refused;
    while (!reports.empty()) {
        auto count = std::min<std::size_t>(reports.size(), model::limits::kSettleBatch);
        auto from = reports.end() - static_cast<std::ptrdiff_t>(count);
        std::vector<Report> batch(
            std::make_move_iterator(from), std::make_move_iterator(reports.end())
        );
        reports.erase(from, reports.end());
        if (base::Planted(base::Bug::kSpoolUnfenced)) {
            for (Report& report : batch) report.settlement.token = LeaseToken{};
        }
        Send(batch);  // a throw leaves the file as it is: all of it is replayed again, fenced
        parts_.metrics.replayed += count - batch.size();
        std::move(batch.begin(), batch.end(), std::back_inserter(refused));
    }
    return refused;
}

void Settler::ReplayOrphans() {
    {
        std::unique_lock lock(mutex_);
        free_.wait(lock, [&] { return !busy_; });
        busy_ = true;
    }
    try {
        for (Spool::Orphan& orphan : spool_.Orphans()) {
            parts_.log.Info(
                "replaying the spool of a dead process",
                {{"file", orphan.file.path().string()},
                 {"outcomes", std::to_string(orphan.reports.size())}}
            );
            KeepRefused(Replay(std::move(orphan.reports)));
            orphan.Remove();
        }
    } catch (const std::exception&) {
        Leave();
        throw;
    }
    Leave();
}

}  // namespace stint::engine
