#include "conformance/conformance.h"

#include <map>

namespace stint::conformance {

namespace {

AttemptEnd EndOf(Settlement::Kind kind) {
    switch (kind) {
        case Settlement::Kind::kComplete:
            return AttemptEnd::kComplete;
        case Settlement::Kind::kRetry:
        case Settlement::Kind::kDead:
            return AttemptEnd::kFailed;
        case Settlement::Kind::kSnooze:
            return AttemptEnd::kSnoozed;
        case Settlement::Kind::kRelease:
            return AttemptEnd::kReleased;
        case Settlement::Kind::kBackground:
            return AttemptEnd::kBackground;
        case Settlement::Kind::kCancelled:
            return AttemptEnd::kCancelled;
        case Settlement::Kind::kBlocked:
            return AttemptEnd::kBlocked;
    }
    return AttemptEnd::kLost;
}

}  // namespace

std::string BackendName(const testing::TestParamInfo<Backend>& info) {
    return info.param.name;
}

testing::AssertionResult Near(Time actual, Time expected, Duration slack) {
    auto off = std::chrono::duration_cast<Duration>(actual - expected);
    if (off <= slack && off >= -slack) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "off by " << off.count() << " ms";
}

Conformance::Conformance() : fixture_(GetParam().make()), store_(fixture_->Open()), store(*store_) {
}

// ---- words ----

SubmitReply Conformance::Submit(NewTask task) {
    if (task.type.empty()) task.type = "t";
    std::vector<SubmitReply> replies = store.Submit({&task, 1});
    EXPECT_EQ(replies.size(), 1u);
    return replies.at(0);
}

TaskId Conformance::Make(NewTask task) {
    SubmitReply reply = Submit(std::move(task));
    EXPECT_EQ(reply.kind, SubmitReply::Kind::kCreated) << reply.message;
    return reply.id;
}

std::vector<TaskId> Conformance::MakeMany(int count, const NewTask& task) {
    std::vector<NewTask> tasks(static_cast<std::size_t>(count), task);
    for (NewTask& one : tasks) {
        if (one.type.empty()) one.type = "t";
    }
    std::vector<TaskId> ids;
    for (const SubmitReply& reply : store.Submit(tasks)) {
        EXPECT_EQ(reply.kind, SubmitReply::Kind::kCreated) << reply.message;
        ids.push_back(reply.id);
    }
    return ids;
}

SessionId Conformance::OpenSession(Duration lease, const std::string& host) {
    NewSession session{
        .id = random.MakeId<SessionId>(),
        .hostname = host,
        .pid = 4711,
        .lease = lease,
        .slots = 8,
        .queues = {},
        .types = {"t", "u", "v"},
        .version = "test",
    };
    EXPECT_TRUE(store.OpenSession(session).valid());
    return session.id;
}

SessionId Conformance::Worker() {
    bool live =
        worker_.valid() && store.Renew({.session = worker_, .lease = limits::kLeaseMax}).live;
    if (!live) worker_ = OpenSession();
    return worker_;
}

ClaimReply Conformance::Claim(ClaimRequest request) {
    if (!request.session.valid()) request.session = Worker();
    if (request.types.empty()) request.types = {"t", "u", "v"};
    return store.Claim(request);
}

std::vector<Lease> Conformance::ClaimMany(int limit, ClaimRequest request) {
    request.limit = limit;
    ClaimReply reply = Claim(std::move(request));
    EXPECT_TRUE(reply.session_live);
    return reply.leases;
}

Lease Conformance::ClaimOne(ClaimRequest request) {
    std::vector<Lease> leases = ClaimMany(1, std::move(request));
    EXPECT_EQ(leases.size(), 1u) << "nothing to claim";
    return leases.empty() ? Lease{} : leases.front();
}

Lease Conformance::MakeClaimed(const NewTask& task) {
    TaskId id = Make(task);
    Lease lease = ClaimOne();
    EXPECT_EQ(lease.task, id);
    return lease;
}

Lease Conformance::ClaimSuspect() {
    return ClaimOne({.suspect = true});
}

Settlement Conformance::Outcome(const Lease& lease, Settlement::Kind kind, Duration delay) const {
    Settlement settlement{
        .task = lease.task,
        .token = lease.token,
        .session = worker_,
        .kind = kind,
        .delay = delay,
        .end = EndOf(kind),
    };
    if (kind == Settlement::Kind::kComplete) settlement.output = R"({"ok":true})";
    if (kind == Settlement::Kind::kRetry || kind == Settlement::Kind::kDead) {
        settlement.error = Failure(kind == Settlement::Kind::kRetry);
    }
    if (kind == Settlement::Kind::kDead) settlement.reason = "given up";
    return settlement;
}

SettleReply Conformance::Settle(const Settlement& settlement) {
    std::vector<SettleReply> replies = store.Settle({&settlement, 1});
    EXPECT_EQ(replies.size(), 1u);
    return replies.at(0);
}

State Conformance::SettleAs(const Lease& lease, Settlement::Kind kind, Duration delay) {
    SettleReply reply = Settle(Outcome(lease, kind, delay));
    EXPECT_EQ(reply.kind, SettleReply::Kind::kAccepted);
    EXPECT_EQ(StateOf(lease.task), reply.state);
    return reply.state;
}

ReclaimReply Conformance::Crash(const Lease& lease) {
    SessionId holder = Get(lease.task).session;
    EXPECT_TRUE(holder.valid());
    // Its lease is shortened to a moment, and the moment passes.
    store.Renew({.session = holder, .lease = limits::kLeaseMin});
    Advance(1min);
    return ReclaimAll();
}

ReclaimReply Conformance::ReclaimAll(const ReclaimRequest& request) {
    ReclaimReply all = store.Reclaim(request);
    for (bool more = all.more; more;) {
        ReclaimReply next = store.Reclaim(request);
        all.expired.insert(all.expired.end(), next.expired.begin(), next.expired.end());
        all.tasks.insert(all.tasks.end(), next.tasks.begin(), next.tasks.end());
        more = next.more;
    }
    return all;
}

CancelReply Conformance::Cancel(TaskId task, std::string_view reason) {
    return store.Cancel({&task, 1}, "operator:ann", reason).at(0);
}

RetryReply Conformance::Retry(TaskId task) {
    return store.Retry({&task, 1}, "operator:ann").at(0);
}

RetryReply Conformance::Discard(TaskId task) {
    return store.Discard({&task, 1}, "operator:ann").at(0);
}

HousekeepReply Conformance::Housekeep() {
    HousekeepReply all = store.Housekeep({});
    for (bool more = all.more; more;) {
        HousekeepReply next = store.Housekeep({});
        all.expired_tasks += next.expired_tasks;
        all.expired_keys += next.expired_keys;
        all.forgotten_sessions += next.forgotten_sessions;
        for (const std::string& period : next.dropped_periods)
            all.dropped_periods.push_back(period);
        more = next.more;
    }
    return all;
}

TaskRecord Conformance::Get(TaskId task) {
    std::optional<TaskRecord> record = store.Get(task);
    EXPECT_TRUE(record.has_value()) << "no task " << task.value();
    return record.value_or(TaskRecord{});
}

std::vector<AuditEntry> Conformance::AuditOf(TaskId task) {
    return store.Audit({.task = task});
}

std::vector<Event> Conformance::EventsOf(TaskId task) {
    std::vector<Event> events;
    for (const AuditEntry& entry : AuditOf(task)) events.push_back(entry.event);
    return events;
}

std::vector<TaskRecord> Conformance::ListAll(const TaskFilter& filter, int page) {
    std::vector<TaskRecord> all;
    ListRequest request{.filter = filter, .limit = page};
    for (;;) {
        TaskPage next = store.List(request);
        EXPECT_LE(next.tasks.size(), static_cast<std::size_t>(page));
        all.insert(all.end(), next.tasks.begin(), next.tasks.end());
        if (!next.next) return all;
        request.before = next.next;
    }
}

std::vector<TaskId> Conformance::Ids(const std::vector<TaskRecord>& tasks) const {
    std::vector<TaskId> ids;
    for (const TaskRecord& task : tasks) ids.push_back(task.id);
    return ids;
}

RetryPolicy Conformance::Fixed(int max_attempts, Duration delay) {
    RetryPolicy policy;
    policy.kind = RetryPolicy::Kind::kFixed;
    policy.max_attempts = max_attempts;
    policy.first_delay = delay;
    policy.jitter = 0;
    return policy;
}

TaskError Conformance::Failure(bool retryable) {
    return {
        .message = "disk is full", .klass = "IoError", .stack = "at disk", .retryable = retryable};
}

// ---- what holds after every case ----

void Conformance::TearDown() {
    if (IsSkipped()) return;
    for (const CheckFinding& finding : store.Check()) {
        EXPECT_TRUE(finding.ok) << finding.what << ": " << finding.detail;
    }
    std::vector<TaskRecord> tasks = ListAll();
    CheckCounts(tasks);
    if (tasks.size() > 300) tasks.resize(300);
    for (const TaskRecord& task : tasks) CheckTask(task);
}

void Conformance::CheckTask(const TaskRecord& task) {
    SCOPED_TRACE("task " + task.id.ToString());
    // I15: the entries follow the table and lead to the state.
    std::optional<State> at;
    int claims = 0;
    std::int64_t last_seq = 0;
    for (const AuditEntry& entry : AuditOf(task.id)) {
        EXPECT_EQ(entry.from, at);
        EXPECT_EQ(Next(at, entry.event), entry.to) << EventName(entry.event);
        EXPECT_GT(entry.seq, last_seq);
        EXPECT_EQ(entry.tenant, task.tenant);
        claims += entry.event == Event::kClaim ? 1 : 0;
        last_seq = entry.seq;
        at = entry.to;
    }
    EXPECT_EQ(at, task.state);
    // I4: one row per claim, numbered without gaps; only a running task has an open one.
    std::vector<AttemptRecord> attempts = store.Attempts(task.id);
    EXPECT_EQ(claims, task.claim_no);
    EXPECT_THAT(attempts, SizeIs(static_cast<std::size_t>(task.claim_no)));
    int claim_no = 0;
    for (const AttemptRecord& attempt : attempts) {
        EXPECT_EQ(attempt.claim_no, ++claim_no);
        bool open = task.state == State::kInProgress && claim_no == task.claim_no;
        EXPECT_EQ(attempt.end == AttemptEnd::kRunning, open);
        EXPECT_EQ(attempt.finished_at.has_value(), !open);
    }
    EXPECT_TRUE(task.max_attempts == 0 || task.attempt <= task.max_attempts);
    EXPECT_EQ(task.session.valid(), task.state == State::kInProgress);
    EXPECT_EQ(task.finished_at.has_value(), IsTerminal(task.state));
}

void Conformance::CheckCounts(const std::vector<TaskRecord>& tasks) {
    std::map<CountKey, std::int64_t> expected;
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> queues;
    for (const TaskRecord& task : tasks) {
        ++expected[{task.state, task.queue, task.type}];
        bool waiting = task.state == State::kOpen || task.state == State::kError;
        queues[task.queue].first += waiting ? 1 : 0;
        queues[task.queue].second += task.state == State::kInProgress ? 1 : 0;
    }
    std::map<CountKey, std::int64_t> counts = store.Counts({});
    std::erase_if(counts, [](const auto& item) { return item.second == 0; });
    EXPECT_EQ(counts, expected);
    for (const QueueRecord& queue : store.Queues()) {
        auto [waiting, running] = queues[queue.settings.name];
        EXPECT_EQ(queue.waiting, waiting) << queue.settings.name;
        EXPECT_EQ(queue.running, running) << queue.settings.name;
    }
}

}  // namespace stint::conformance
