// What every answer must satisfy, judged before it can be lost on the way back.
#include <fmt/format.h>

#include "base/check.h"
#include "sim/clock.h"
#include "sim/oracle.h"

namespace stint::sim {

using model::IsTerminal;
using model::NewTask;
using model::State;
using store::CancelReply;
using store::Settlement;
using store::SettleReply;
using store::SubmitReply;

void Oracle::AfterSubmit(std::span<const NewTask> tasks, std::span<const SubmitReply> replies) {
    if (tasks.size() != replies.size()) {
        return Violate("I1", {}, "not one answer per submitted task");
    }
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        if (tasks[i].after && replies[i].kind == SubmitReply::Kind::kCreated) {
            NoteWait(replies[i].id, *tasks[i].after, tasks[i].after->on, false);
        }
    }
    Digest();
    for (std::size_t i = 0; i < tasks.size(); ++i) JudgeSubmit(tasks[i], replies[i]);
}

void Oracle::JudgeSubmit(const NewTask& task, const SubmitReply& reply) {
    using Kind = SubmitReply::Kind;
    if (!reply.accepted()) {
        if (reply.kind == Kind::kConflict && task.idempotency_key.empty() &&
            task.unique_key.empty()) {
            Violate("I8", reply.id, "a conflict without a key");
        }
        return;
    }
    const model::TaskRecord* stored = Find(reply.id);
    if (stored == nullptr) return Violate("I1", reply.id, "accepted and not stored");
    if (!task.idempotency_key.empty()) {
        Key key{task.tenant.value(), task.idempotency_key};
        std::string hash = model::RequestHash(task);
        auto [known, fresh] = idempotent_.try_emplace(key, reply.id, hash);
        if (known->second.second != hash) {
            return Violate("I8", reply.id, "another request was accepted under a used key");
        }
        if (known->second.first != reply.id) {
            return Violate(
                "I8",
                reply.id,
                fmt::format("one key, two tasks: {} too", known->second.first.value())
            );
        }
        if (!fresh) return;
    }
    if (reply.kind == Kind::kExisting && !task.unique_key.empty()) {
        // The one it stands for must be alive and have the key: else this request was swallowed.
        if (IsTerminal(stored->state) || stored->unique_key != task.unique_key) {
            Violate("I7", reply.id, "a finished task still holds its unique key");
        }
    }
    if (reply.kind == Kind::kExisting && task.unique_key.empty() && task.idempotency_key.empty() &&
        !(task.id.valid() && task.id == reply.id)) {
        Violate("I8", reply.id, "an existing task for a request without a key");
    }
}

void Oracle::AfterOpen(const store::NewSession& session) {
    if (session.exclusive) {
        for (auto& [id, other] : sessions_) other.over = true;
    }
    sessions_[session.id] = {now() + session.lease, false};
}

void Oracle::AfterRenew(const store::RenewRequest& request, const store::RenewReply& reply) {
    SessionShadow& session = sessions_[request.session];
    if (!reply.live) {
        session.over = true;
        return;
    }
    if (session.over || session.lease_until <= now()) {
        Violate("I5", {}, "a session was renewed after its end");
    }
    session.lease_until = now() + request.lease;
    for (const store::Held& held : request.held) {
        bool lost = std::count(reply.lost.begin(), reply.lost.end(), held) > 0;
        auto shadow = shadows_.find(held.task);
        bool mine = shadow != shadows_.end() && shadow->second.token == held.token &&
                    shadow->second.record.state == State::kInProgress;
        // Answers name tasks, not tokens: with two leases of one task they cannot tell.
        auto same = std::count_if(request.held.begin(), request.held.end(), [&](const auto& other) {
            return other.task == held.task;
        });
        if (mine == lost && same == 1) {
            Violate(
                "I3",
                held.task,
                mine ? "a holder was told it lost its task"
                     : "a former holder was told it still holds the task"
            );
        }
    }
}

void Oracle::AfterClose(SessionId session) {
    sessions_[session].over = true;
}

void Oracle::AfterClaim(const store::ClaimRequest& request, const store::ClaimReply& reply) {
    Digest();
    for (const store::Lease& lease : reply.leases) {
        auto shadow = shadows_.find(lease.task);
        if (shadow == shadows_.end()) {
            Violate("I1", lease.task, "claimed a task that was never stored");
            continue;
        }
        shadow->second.alone = lease.alone;
        shadow->second.group = lease.group;
        shadow->second.seats = lease.seats;
        const model::TaskRecord& record = shadow->second.record;
        if (record.state != State::kInProgress || shadow->second.token != lease.token ||
            record.session != request.session || record.claim_no != lease.claim_no) {
            Violate("I5", lease.task, "a lease was handed out that the store does not have");
        }
    }
    for (std::size_t i = 1; i < reply.leases.size(); ++i) {
        if (reply.leases[i - 1].priority < reply.leases[i].priority) {
            Violate("order", reply.leases[i].task, "a lower priority was claimed first");
        }
    }
}

void Oracle::BeforeSettle(std::span<const Settlement> settlements) {
    for (const Settlement& settlement : settlements) {
        auto shadow = shadows_.find(settlement.task);
        bool held = shadow != shadows_.end() && shadow->second.record.state == State::kInProgress;
        before_[settlement.task] = held ? shadow->second.token : LeaseToken{};
    }
}

void Oracle::JudgeToken(TaskId task, LeaseToken asked, bool accepted, std::string_view who) {
    LeaseToken& current = before_[task];
    if (accepted && (!current.valid() || asked != current)) {
        Violate("I3", task, fmt::format("{} without the current token was accepted", who));
    }
    if (accepted) current = LeaseToken{};  // a second write of the batch is a stale one
}

void Oracle::AfterSettle(
    std::span<const Settlement> settlements, std::span<const SettleReply> replies
) {
    CHECK(settlements.size() == replies.size());
    for (std::size_t i = 0; i < settlements.size(); ++i) {
        const Settlement& settlement = settlements[i];
        bool accepted = replies[i].kind == SettleReply::Kind::kAccepted;
        bool was_current =
            before_[settlement.task].valid() && before_[settlement.task] == settlement.token;
        JudgeToken(settlement.task, settlement.token, accepted, "a settlement");
        if (accepted && settlement.kind == Settlement::Kind::kBlocked &&
            replies[i].state != State::kCancelled) {
            std::vector<TaskId> on = settlement.wait.on;
            for (const NewTask& child : settlement.children) {
                if (child.unique_key.empty()) on.push_back(child.id);
            }
            // A key may have stood for a task that was there: the store says for which.
            for (const model::WaitMember& member : store_.Waited(settlement.task)) {
                if (member.asked != member.task) on.push_back(member.task);
                bool own = std::ranges::any_of(settlement.children, [&](const NewTask& child) {
                    return child.id == member.asked && !child.unique_key.empty();
                });
                if (own && member.asked == member.task) on.push_back(member.task);
            }
            NoteWait(settlement.task, settlement.wait, std::move(on), true);
        }
        if (was_current && replies[i].kind == SettleReply::Kind::kLost) {
            Violate("I3", settlement.task, "the holder's outcome was refused as a stale one");
        }
    }
}

void Oracle::AfterReclaim(const store::ReclaimReply& reply) {
    Digest();
    for (SessionId session : reply.expired) {
        SessionShadow& shadow = sessions_[session];
        if (!shadow.over && shadow.lease_until > now()) {
            Violate("I5", {}, "a session was ended before its lease was over");
        }
        shadow.over = true;
    }
}

void Oracle::BeforeFinish(const store::BackgroundFinish& finish) {
    auto shadow = shadows_.find(finish.task);
    bool outside = shadow != shadows_.end() && shadow->second.record.state == State::kBackground;
    before_[finish.task] = outside ? shadow->second.token : LeaseToken{};
}

void Oracle::AfterFinish(const store::BackgroundFinish& finish, const Result<model::State>& reply) {
    if (finish.token) {
        JudgeToken(finish.task, *finish.token, reply.has_value(), "a completion from outside");
    }
}

void Oracle::AfterCancel(std::span<const TaskId> tasks, std::span<const CancelReply> replies) {
    CHECK(tasks.size() == replies.size());
    Digest();
    for (TaskId task : tasks) {
        Refresh(task);
        for (TaskId below : Below(task)) {
            Refresh(below);
            const model::TaskRecord* record = Find(below);
            bool stops = IsTerminal(record->state) || record->cancel_requested;
            if (!stops) Violate("I13", below, "a cancel above did not reach it");
        }
    }
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        const model::TaskRecord* task = Find(tasks[i]);
        using Kind = CancelReply::Kind;
        bool right = true;
        switch (replies[i].kind) {
            case Kind::kNotFound:
                right = task == nullptr;
                break;
            case Kind::kCancelled:
                right = task != nullptr && task->state == State::kCancelled;
                break;
            case Kind::kRequested:
                right = task != nullptr && task->cancel_requested;
                break;
            case Kind::kAlreadyTerminal:
                right = task != nullptr && IsTerminal(task->state);
                break;
        }
        if (!right) Violate("I13", tasks[i], "a cancel was acknowledged that is not there");
    }
}

void Oracle::AfterPublish() {
    // Tasks of types nobody knew take their settings now.
    for (const auto& [task, shadow] : shadows_) Refresh(task);
}

void Oracle::AfterWrite(bool committed) {
    Digest();
    for (TaskId task : staged_effects_) {
        if (!committed) break;
        ++effects_[task];
        const model::TaskRecord* record = Find(task);
        if (record == nullptr || record->state != State::kComplete) {
            Violate("I16", task, "its effects were committed without its completion");
        }
    }
}

void Oracle::Acknowledged(TaskId task, std::int64_t marker) {
    if (Find(task) == nullptr) Violate("I1", task, "acknowledged and not stored");
    auto [known, fresh] = acknowledged_.emplace(marker, task);
    if (!fresh && known->second != task) {
        Violate("I8", task, fmt::format("one request, two tasks: {} too", known->second.value()));
    }
}

void Oracle::HandlerStarted(TaskId task, int claim_no, std::stop_token stop) {
    running_[{task, claim_no}] = {std::move(stop), &world_.process()};
    JudgeSeats(task);
}

// One that holds no lease any more is fenced, however long its thread goes on.
void Oracle::JudgeSeats(TaskId started) {
    auto shadow = shadows_.find(started);
    if (shadow == shadows_.end() || shadow->second.group == 0) return;
    int running = 0;
    for (const auto& [attempt, of] : running_) {
        auto other = shadows_.find(attempt.first);
        if (other == shadows_.end() || other->second.group != shadow->second.group) continue;
        const model::TaskRecord& record = other->second.record;
        bool holds = record.state == State::kInProgress && record.claim_no == attempt.second;
        if (holds && !of.process->dead()) ++running;
    }
    if (running > shadow->second.seats) {
        Violate("I6", started, fmt::format("{} run on {} seats", running, shadow->second.seats));
    }
}

int Oracle::UnitsOf(const std::string& resource) const {
    int units = 0;
    std::map<std::int64_t, int> left;  // seats of the groups
    for (const auto& [id, shadow] : shadows_) {
        if (shadow.record.state != State::kInProgress) continue;
        for (const model::Need& need : shadow.record.placement.needs) {
            if (need.resource != resource) continue;
            int& seats = left.try_emplace(shadow.group, shadow.seats).first->second;
            if (shadow.group == 0 || seats-- > 0) units += need.units;
        }
    }
    return units;
}

void Oracle::HandlerEnded(TaskId task, int claim_no) {
    auto ended = running_.extract({task, claim_no});
    if (ended.empty()) return;
    bool obeyed = ended.mapped().stop.stop_requested() && !world_.process().dead();
    if (!obeyed) spent_attempts_.insert({task, claim_no});
}

const model::TaskRecord* Oracle::Find(TaskId task) const {
    auto found = shadows_.find(task);
    return found == shadows_.end() ? nullptr : &found->second.record;
}

std::vector<TaskId> Oracle::Tasks() const {
    std::vector<TaskId> tasks;
    for (const auto& [id, shadow] : shadows_) tasks.push_back(id);
    return tasks;
}

}  // namespace stint::sim
