// Tasks that start after others: of the same batch, or there before.
#include "base/check.h"
#include "model/batch_order.h"
#include "store/postgres/submit.h"

namespace stint::store::pg {

// Those that are not of this batch, all at once and in order.
void Submission::HoldDependencies() {
    if (!AnyAfter(tasks_)) return;
    std::vector<std::int64_t> others;
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
        if (tasks_[i].id.valid()) named_.emplace(tasks_[i].id, i);
    }
    for (const Incoming& one : incoming_) {
        if (!one.task->after) continue;
        for (TaskId asked : one.task->after->on) {
            if (!named_.contains(asked)) others.push_back(asked.value());
        }
    }
    if (!others.empty()) held_ = store_.Hold(transaction_, std::move(others));
}

bool Submission::AddWait(const Incoming& one) {
    const WaitOn& after = *one.task->after;
    Beside beside;
    std::vector<std::int64_t> known;  // by a key, so that they were there before
    for (TaskId asked : after.on) {
        auto found = named_.find(asked);
        if (found == named_.end()) continue;
        if (tasks_[found->second].tenant != one.task->tenant) continue;  // not there for it
        const SubmitReply& reply = beside[asked] = replies_[found->second];
        bool there = reply.accepted() && reply.kind != SubmitReply::Kind::kCreated;
        if (there && !held_.contains(reply.id)) known.push_back(reply.id.value());
    }
    if (!known.empty()) {
        Store(true);  // they may be of this very batch
        held_.merge(store_.Hold(transaction_, std::move(known)));
    }
    auto members = PostgresStore::MembersOf(after.on, one.task->tenant, beside, held_);
    if (!members) {
        SubmitReply& reply = replies_[one.index];
        reply.kind = SubmitReply::Kind::kInvalid;
        reply.message = "after names " + members.error().message;
        return false;
    }
    WaitTally tally = TallyOf(*members);
    waits_.push_back({one.id, after, std::move(*members), tally, false});
    return true;
}

// They were stored like the others; those that have to wait leave the line again before anybody
// sees them there.
void Submission::BlockNew() {
    if (waits_.empty()) return;
    std::vector<std::int64_t> blocked, fresh;
    std::map<TaskId, std::size_t> index;
    for (const Incoming& one : incoming_) index[one.id] = one.index;
    for (const NewWait& wait : waits_) {
        if (wait.blocks()) blocked.push_back(wait.waiter.value());
        for (const WaitMember& member : wait.members) {
            if (!member.ended && !held_.contains(member.task)) fresh.push_back(member.task.value());
        }
    }
    // Of this batch, and there by now.
    if (!fresh.empty()) store_.Hold(transaction_, std::move(fresh));
    Changes changes(store_.catalog());
    for (const Facts& facts : store_.TakeWaiting(transaction_, blocked, {State::kOpen})) {
        changes.AddAudit(
            {facts.id,
             store_.catalog().LaneOf(facts.lane).tenant,
             Event::kBlock,
             State::kOpen,
             State::kBlocked,
             facts.attempt,
             facts.generation,
             {},
             "store",
             {}}
        );
        changes.AddOutside({facts, State::kBlocked, std::nullopt, {}});
        replies_[index.at(facts.id)].due_now = false;
    }
    store_.Apply(transaction_, changes);
    store_.WriteWaits(transaction_, waits_);
    std::erase_if(waits_, [](const NewWait& wait) {
        return !wait.blocks() || wait.verdict() == WaitVerdict::kGoesOn;
    });
    store_.EndWaits(transaction_, std::move(waits_));
}

}  // namespace stint::store::pg
