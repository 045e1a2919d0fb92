#include "services/deletions.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/result.h"
#include "base/text.h"
#include "base/thread.h"
#include "store/quiet.h"

namespace stint::services {

namespace {

using base::MakeError;
using model::Deletion;
using model::DeletionState;
using model::Step;

constexpr int kTakenAtOnce = 500;  // of several kinds together
constexpr std::size_t kSubmittedAtOnce = 100;
constexpr int kLooks = 5;

Result<std::vector<Step>> StepsOf(const DeletionWish& wish) {
    std::vector<Step> steps;
    if (!wish.follow_ups.empty()) steps.push_back({"follow-ups", wish.follow_ups, false});
    steps.push_back({"delete", {wish.task}, false});
    if (auto valid = model::ValidateSteps(steps, wish.tenant); !valid) return valid.error();
    return steps;
}

}  // namespace

Result<Deletion> DeletionDesk::Mark(const DeletionWish& wish) {
    auto steps = StepsOf(wish);
    if (!steps) return steps.error();
    model::NewDeletion wanted{
        .tenant = wish.tenant,
        .kind = wish.kind,
        .key = wish.key,
        .initiator = wish.initiator,
        .steps = model::StepsToJson(*steps),
        .grace = wish.grace};
    if (auto valid = model::Validate(wanted); !valid) return valid.error();
    for (int look = 0; look < kLooks; ++look) {
        // One that runs is not begun a second time beside itself.
        auto there = store_.Results().FindDeletion(wish.tenant, wish.kind, wish.key);
        wanted.replaces = {};
        if (there && there->state == DeletionState::kBegun) {
            if (auto free = CheckOver(*there); !free) return free.error();
            wanted.replaces = there->id;
        }
        Deletion mark = store_.Results().MarkDeletion(wanted);
        // Begun: since we looked.
        if (mark.state != DeletionState::kBegun) {
            told_ = true;
            return mark;
        }
    }
    return MakeError(
        Code::kUnavailable,
        "{} {} is marked and deleted by others all the time; try again",
        wish.kind,
        base::Quoted(wish.key)
    );
}

Result<void> DeletionDesk::CheckOver(const Deletion& begun) {
    auto record = store_.Get(begun.task);
    if (!record || model::IsTerminal(record->state)) return {};
    return MakeError(
        Code::kConflict,
        "the deletion of {} {} is running; its task is {}",
        begun.kind,
        base::Quoted(begun.key),
        begun.task.value()
    );
}

Result<Deletion> DeletionDesk::Unmark(
    TenantId tenant, std::string_view kind, std::string_view key
) {
    return store_.Results().Unmark(tenant, kind, key);
}

Result<std::vector<Deletion>> DeletionDesk::List(const store::DeletionsRequest& request) {
    if (request.limit < 1 || request.limit > model::limits::kListPage) {
        return MakeError(
            Code::kInvalid,
            "limit is {}; it must be between 1 and {}",
            request.limit,
            model::limits::kListPage
        );
    }
    return store_.Results().Deletions(request);
}

Result<void> DeletionDesk::SetPace(const model::Pace& pace) {
    if (auto valid = model::Validate(pace); !valid) return valid;
    store_.Results().SetPace(pace);
    return {};
}

// ---- the sweep ---------------------------------------------------------------------------------

std::optional<model::NewTask> DeletionDesk::TaskOf(const Deletion& deletion) {
    auto steps = model::StepsFromJson(deletion.steps);
    if (!steps) {
        log_.Error(
            "a deletion cannot be read here, and waits for a node that can",
            {{"kind", deletion.kind}, {"key", deletion.key}, {"why", steps.error().message}}
        );
        return std::nullopt;
    }
    model::StepsInput input{
        .steps = std::move(*steps),
        .actor = deletion.initiator,
        .tags = {"deletion:" + deletion.kind}};
    model::NewTask task = model::TaskOfSteps(input, deletion.tenant);
    task.idempotency_key = store::DeletionKey(deletion);
    return task;
}

void DeletionDesk::Begin(std::span<const Deletion> deletions) {
    std::vector<const Deletion*> readable;
    std::vector<model::NewTask> tasks;
    for (const Deletion& deletion : deletions) {
        auto task = TaskOf(deletion);
        if (!task) continue;
        readable.push_back(&deletion);
        tasks.push_back(std::move(*task));
    }
    if (tasks.empty()) return;
    std::vector<store::SubmitReply> replies = store_.Submit(tasks);
    for (std::size_t i = 0; i < replies.size(); ++i) {
        const store::SubmitReply& reply = replies[i];
        if (!reply.accepted()) {
            log_.Warn(
                "a deletion got no task, and is tried again",
                {{"kind", readable[i]->kind}, {"key", readable[i]->key}, {"why", reply.message}}
            );
            continue;
        }
        store_.Results().BeginDeletion(readable[i]->id, reply.id);
        wake::Hint hint{wake::Hint::Kind::kTaskAvailable, reply.queue, {}};
        if (reply.due_now) wake_.Signal({&hint, 1});
    }
}

bool DeletionDesk::Round() {
    store::TakeReply taken = store_.Results().TakeDeletions(kTakenAtOnce);
    std::span<const Deletion> left(taken.deletions);
    while (!left.empty()) {
        auto some = left.first(std::min(left.size(), kSubmittedAtOnce));
        Begin(some);
        left = left.subspan(some.size());
    }
    return !taken.deletions.empty();
}

base::Instant DeletionDesk::RunOnce() {
    try {
        auto quiet = store::QuietFor(store_, &store::Quiet::deletions, looked_);
        if (!told_.exchange(false) && quiet) return clock_.Now() + std::min(*quiet, look_every_);
        looked_ = base::SystemClock().Now();
        bool more = Round();
        return clock_.Now() + (more ? Duration::zero() : look_every_);
    } catch (const std::exception& error) {
        told_ = true;
        log_.Warn("deletions wait for the store", {{"error", error.what()}});
        return clock_.Now() + error_wait_;
    }
}

void DeletionDesk::Start(Duration look_every, Duration error_wait) {
    std::lock_guard guard(life_);
    look_every_ = look_every;
    error_wait_ = error_wait;
    thread_ = base::StartThread([this](std::stop_token stop) {
        while (!stop.stop_requested()) pulse_.Wait(clock_, stop, RunOnce());
    });
}

void DeletionDesk::Stop() {
    std::lock_guard guard(life_);
    if (!thread_.joinable()) return;
    thread_.request_stop();
    thread_.join();
}

}  // namespace stint::services
