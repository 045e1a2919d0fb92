// For tests: a store that fails on request, over the memory store.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
        return Do("settle", [&] { return inner_.Settle(settlements); });
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
    std::vector<store::FinishedTask> Finished(std::span<const TaskId> tasks) override {
        return Do("finished", [&] { return inner_.Finished(tasks); });
    }
    std::vector<store::Explanation> Explain(TaskId task, const store::ClaimRequest& claimer)
        override {
        return inner_.Explain(task, claimer);
    }
    std::optional<store::QueueSettings> ChangeQueue(
        const store::QueueChange& change, std::string_view actor
    ) override {
        return inner_.ChangeQueue(change, actor);
    }
    std::vector<store::QueueRecord> Queues() override { return inner_.Queues(); }
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

private:
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
    mutable std::mutex mutex_;
    std::map<std::string, std::vector<Trouble>> planned_;
    std::map<std::string, int, std::less<>> calls_;
    std::vector<std::string> order_;
    std::function<void(std::string_view)> listener_;
    bool down_ = false;
};

}  // namespace stint::engine
