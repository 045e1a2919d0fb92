// For tests: a store that fails on request, over the memory store.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/events.h"
#include "store/flows.h"
#include "store/memory/memory_store.h"
#include "store/store.h"

namespace stint::engine {

enum class Trouble : std::uint8_t {
    kUnavailable,    // nothing happens
    kUnknownBefore,  // nothing happened, but nobody knows
    kUnknownAfter,   // it happened, but nobody knows
    kUnstorable,     // nothing happens, and the request is to blame
    kBugAfter,       // as the next, but it happened
    kBug,            // a std::runtime_error of no known kind
};

class TroubledStore final : public store::Store {
public:
    explicit TroubledStore(store::Store& inner) : inner_(inner) {}

    // The next `times` calls of `op` ("claim", "settle", …; "*" = any).
    void Next(std::string_view op, Trouble trouble, int times = 1) {
        std::lock_guard guard(mutex_);
        for (int i = 0; i < times; ++i) planned_[std::string(op)].push_back(trouble);
    }
    void SetDown(bool down) {
        std::lock_guard guard(mutex_);
        down_ = down;
    }
    // Somebody's transaction keeps this task from being settled, until there is none.
    void SetBusy(TaskId task) {
        std::lock_guard guard(mutex_);
        busy_ = task;
    }
    // Called before each operation, with its name.
    void OnCall(std::function<void(std::string_view)> listener) {
        std::lock_guard guard(mutex_);
        listener_ = std::move(listener);
    }
    int calls(std::string_view op) const {
        std::lock_guard guard(mutex_);
        auto found = calls_.find(op);
        return found == calls_.end() ? 0 : found->second;
    }
    std::vector<std::string> order() const {
        std::lock_guard guard(mutex_);
        return order_;
    }

    // What a claim is said to have seen by the way, just now.
    void SetQuiet(store::Quiet quiet) {
        std::lock_guard guard(mutex_);
        quiet_ = quiet;
        quiet_->seen = base::SystemClock().Now();
    }
    std::optional<store::Quiet> LastQuiet() override {
        std::lock_guard guard(mutex_);
        return quiet_;
    }

    store::StoreInfo Info() override { return inner_.Info(); }
    Time Now() override { return inner_.Now(); }
    TaskId ReserveIds(int count) override {
        return Do("reserve", [&] { return inner_.ReserveIds(count); });
    }
    void PublishTypes(std::span<const store::TypeDefaults> types) override {
        Do("publish", [&] { return inner_.PublishTypes(types), 0; });
    }
    std::vector<store::TypeRecord> Types() override { return inner_.Types(); }
    std::vector<store::SubmitReply> Submit(std::span<const store::NewTask> tasks) override {
        return Do("submit", [&] { return inner_.Submit(tasks); });
    }
    std::vector<store::SubmitReply> SubmitAll(std::span<const store::NewTask> tasks) override {
        return Do("submit", [&] { return inner_.SubmitAll(tasks); });
    }
    NodeId OpenSession(const store::NewSession& session) override {
        return Do("open", [&] { return inner_.OpenSession(session); });
    }
    store::RenewReply Renew(const store::RenewRequest& request) override {
        return Do("renew", [&] { return inner_.Renew(request); });
    }
    void CloseSession(SessionId session) override {
        Do("close", [&] { return inner_.CloseSession(session), 0; });
    }
    std::vector<store::SessionRecord> Sessions() override {
        return Do("sessions", [&] { return inner_.Sessions(); });
    }
    std::vector<store::NodeRecord> Nodes() override { return inner_.Nodes(); }
    store::ClaimReply Claim(const store::ClaimRequest& request) override {
        return Do("claim", [&] { return inner_.Claim(request); });
    }
    std::vector<store::SettleReply> Settle(std::span<const store::Settlement> settlements
    ) override {
        return Do("settle", [&] {
            std::vector<store::Settlement> free;
            for (const store::Settlement& one : settlements) {
                if (one.task != busy()) free.push_back(one);
            }
            std::vector<store::SettleReply> answers = inner_.Settle(free), replies;
            auto next = answers.begin();
            for (const store::Settlement& one : settlements) {
                replies.push_back(
                    one.task == busy() ? store::SettleReply{store::SettleReply::Kind::kBusy}
                                       : *next++
                );
            }
            return replies;
        });
    }
    store::ReclaimReply Reclaim(const store::ReclaimRequest& request) override {
        return Do("reclaim", [&] { return inner_.Reclaim(request); });
    }
    Result<store::State> FinishBackground(const store::BackgroundFinish& finish) override {
        return Do("finish", [&] { return inner_.FinishBackground(finish); });
    }
    std::optional<store::SettleReply> SettledBy(TaskId task, LeaseToken token) override {
        return Do("settled_by", [&] { return inner_.SettledBy(task, token); });
    }
    std::vector<store::CancelReply> Cancel(
        std::span<const TaskId> tasks, std::string_view actor, std::string_view reason
    ) override {
        return Do("cancel", [&] { return inner_.Cancel(tasks, actor, reason); });
    }
    std::vector<store::RetryReply> Retry(std::span<const TaskId> tasks, std::string_view actor)
        override {
        return inner_.Retry(tasks, actor);
    }
    std::vector<store::RetryReply> Discard(std::span<const TaskId> tasks, std::string_view actor)
        override {
        return inner_.Discard(tasks, actor);
    }
    Result<void> Edit(TaskId task, const store::TaskEdit& edit, std::string_view actor) override {
        return inner_.Edit(task, edit, actor);
    }
    std::optional<store::TaskRecord> Get(TaskId task) override {
        return Do("get", [&] { return inner_.Get(task); });
    }
    std::optional<TaskId> FindByIdempotencyKey(TenantId tenant, std::string_view key) override {
        return Do("find", [&] { return inner_.FindByIdempotencyKey(tenant, key); });
    }
    store::TaskPage List(const store::ListRequest& request) override {
        return inner_.List(request);
    }
    std::map<store::CountKey, std::int64_t> Counts(const store::TaskFilter& filter) override {
        return inner_.Counts(filter);
    }
    std::vector<store::AttemptRecord> Attempts(TaskId task) override {
        return inner_.Attempts(task);
    }
    std::vector<store::AuditEntry> Audit(const store::AuditRequest& request) override {
        return inner_.Audit(request);
    }
    std::vector<model::WaitMember> Waited(TaskId task) override {
        return Do("waited", [&] { return inner_.Waited(task); });
    }
    std::vector<store::FinishedTask> Finished(std::span<const TaskId> tasks) override {
        return Do("finished", [&] { return inner_.Finished(tasks); });
    }
    std::vector<store::Explanation> Explain(TaskId task, const store::ClaimRequest& claimer)
        override {
        return inner_.Explain(task, claimer);
    }
    std::vector<store::Crowd> Crowds(const std::string& queue) override {
        return inner_.Crowds(queue);
    }
    std::optional<store::QueueSettings> ChangeQueue(
        const store::QueueChange& change, std::string_view actor
    ) override {
        return inner_.ChangeQueue(change, actor);
    }
    std::vector<store::QueueRecord> Queues() override { return inner_.Queues(); }
    store::EventStore& Events() override { return events_; }
    store::FlowStore& Flows() override { return inner_.Flows(); }
    store::HousekeepReply Housekeep(const store::HousekeepRequest& request) override {
        return Do("housekeep", [&] { return inner_.Housekeep(request); });
    }
    std::vector<store::CheckFinding> Check() override { return inner_.Check(); }
    Result<void> Write(const std::function<Result<void>(store::Transaction&)>& work) override {
        return Do("write", [&] { return inner_.Write(work); });
    }
    Result<std::unique_ptr<store::Transaction>> Borrow(void* connection) override {
        return Do("borrow", [&] { return inner_.Borrow(connection); });
    }
    store::ScheduleStore& Schedules() override { return inner_.Schedules(); }
    store::ResultStore& Results() override { return inner_.Results(); }
    store::ResourceStore& Resources() override { return inner_.Resources(); }

    std::string unreadable_workflow;  // as if a newer program had written it

private:
    // Fails as "next_events", "fire" and "publish_event".
    class TroubledEvents final : public store::EventStore {
    public:
        explicit TroubledEvents(TroubledStore& store) : store_(store) {}
        std::vector<store::PublishReply> Publish(std::span<const store::NewEvent> events) override {
            return store_.Do("publish_event", [&] { return inner().Publish(events); });
        }
        Result<store::WorkflowRecord> PutWorkflow(
            const store::WorkflowDefinition& definition, std::string_view actor
        ) override {
            return inner().PutWorkflow(definition, actor);
        }
        bool RemoveWorkflow(TenantId tenant, std::string_view name) override {
            return inner().RemoveWorkflow(tenant, name);
        }
        std::vector<store::WorkflowRecord> Workflows() override {
            std::vector<store::WorkflowRecord> all = inner().Workflows();
            for (store::WorkflowRecord& one : all) {
                if (one.definition.name != store_.unreadable_workflow) continue;
                one.definition.triggers.clear();
                one.definition.joins.clear();
                one.unreadable = "has a word of tomorrow";
            }
            return all;
        }
        store::NextEventsReply NextEvents(const store::NextEventsRequest& request) override {
            return store_.Do("next_events", [&] { return inner().NextEvents(request); });
        }
        std::vector<store::FireReply> Fire(std::span<const store::EventOutcome> outcomes) override {
            return store_.Do("fire", [&] { return inner().Fire(outcomes); });
        }
        std::optional<store::EventRecord> GetEvent(EventNo event) override {
            return inner().GetEvent(event);
        }
        std::vector<store::EventRecord> ListEvents(const store::EventFilter& filter) override {
            return inner().ListEvents(filter);
        }
        std::map<store::EventCountKey, std::int64_t> CountEvents() override {
            return inner().CountEvents();
        }
        std::vector<store::FiringRecord> Firings(const store::FiringFilter& filter) override {
            return inner().Firings(filter);
        }
        std::vector<store::JoinInstance> Joins(const store::JoinFilter& filter) override {
            return inner().Joins(filter);
        }
        store::TidyReply Tidy(const store::TidyRequest& request) override {
            return inner().Tidy(request);
        }

    private:
        store::EventStore& inner() { return store_.inner_.Events(); }
        TroubledStore& store_;
    };

    template <class Work>
    std::invoke_result_t<Work> Do(std::string_view op, Work work) {
        std::optional<Trouble> trouble = Note(op);
        if (trouble == Trouble::kUnavailable) throw store::Unavailable("injected: away");
        if (trouble == Trouble::kUnknownBefore) throw store::CommitUnknown("injected: unknown");
        if (trouble == Trouble::kUnstorable) throw store::Unstorable("injected: too large");
        if (trouble == Trouble::kBug) throw std::runtime_error("injected: refused");
        auto result = work();
        if (trouble == Trouble::kBugAfter) throw std::runtime_error("injected: broke afterwards");
        if (trouble == Trouble::kUnknownAfter) throw store::CommitUnknown("injected: unknown");
        return result;
    }

    std::optional<Trouble> Note(std::string_view op) {
        std::function<void(std::string_view)> listener;
        std::optional<Trouble> trouble;
        {
            std::lock_guard guard(mutex_);
            ++calls_[std::string(op)];
            order_.emplace_back(op);
            listener = listener_;
        }
        if (listener) listener(op);
        std::lock_guard guard(mutex_);
        if (down_) trouble = Trouble::kUnavailable;
        for (const std::string& name : {std::string(op), std::string("*")}) {
            auto planned = planned_.find(name);
            if (trouble || planned == planned_.end() || planned->second.empty()) continue;
            trouble = planned->second.front();
            planned->second.erase(planned->second.begin());
        }
        return trouble;
    }

    store::Store& inner_;
    TaskId busy() const {
        std::lock_guard guard(mutex_);
        return busy_;
    }

    mutable std::mutex mutex_;
    std::map<std::string, std::vector<Trouble>> planned_;
    std::map<std::string, int, std::less<>> calls_;
    std::vector<std::string> order_;
    std::function<void(std::string_view)> listener_;
    std::optional<store::Quiet> quiet_;
    TaskId busy_;
    bool down_ = false;
    TroubledEvents events_{*this};
};

}  // namespace stint::engine
