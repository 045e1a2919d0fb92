// stint::Resources: the public words for store::ResourceStore.
#include <stint/resource.h>

#include "base/result.h"
#include "base/text.h"
#include "node/engine_impl.h"
#include "node/resource_client.h"
#include "node/try.h"
#include "node/why.h"

namespace stint {

using node::Try;

namespace {

constexpr std::string_view kActor = "engine";

ResourceInfo ToPublic(const store::ResourceRecord& record) {
    ResourceInfo info;
    info.name = record.settings.name;
    info.pattern = record.pattern;
    info.capacity = record.settings.capacity;
    if (const auto& rate = record.settings.rate) {
        info.rate = ResourceRate{rate->count, rate->period, rate->burst};
    }
    info.held = record.held;
    info.holders = record.holders;
    info.waiting = record.waiting;
    info.state = node::BreakerStateName(record.breaker);
    info.closed_until = record.closed_until;
    for (const store::BreakerEvidence& one : record.evidence) {
        info.evidence.push_back(fmt::format(
            "{} task {} ({}): {}", base::Iso8601(one.at), one.task.ToString(), one.type, one.message
        ));
    }
    return info;
}

store::Breaker BreakerOf(const ResourceOptions& options, store::Breaker breaker) {
    if (options.close_after) breaker.failures = *options.close_after;
    if (options.close_for) breaker.open_for = *options.close_for;
    if (options.close_at_most) breaker.open_at_most = *options.close_at_most;
    return breaker;
}

}  // namespace

Resources Engine::resources() {
    return Resources(*impl_->store, *impl_->wake);
}

Result<ResourceInfo> Resources::Set(std::string_view name, const ResourceOptions& options) {
    return Try([&]() -> Result<ResourceInfo> {
        node::ResourceClient client(store_->Resources(), *wake_);
        store::ResourceChange change{.name = std::string(name)};
        if (options.capacity && options.unlimited) {
            return Error{Code::kInvalid, "capacity and unlimited exclude each other"};
        }
        if (options.rate && options.unrated) {
            return Error{Code::kInvalid, "rate and unrated exclude each other"};
        }
        if (options.capacity || options.unlimited) change.capacity = options.capacity;
        if (options.rate) {
            change.rate =
                store::Rate{options.rate->count, options.rate->period, options.rate->burst};
        } else if (options.unrated) {
            change.rate = std::optional<store::Rate>();
        }
        if (options.close_after || options.close_for || options.close_at_most) {
            auto there = client.Find(name);
            change.breaker = BreakerOf(options, there ? there->settings.breaker : store::Breaker{});
        }
        auto record = client.Change(change, kActor);
        if (!record) return record.error();
        return ToPublic(*record);
    });
}

Result<ResourceInfo> Resources::Get(std::string_view name) {
    return Try([&]() -> Result<ResourceInfo> {
        auto record = store_->Resources().Find(name);
        if (record) return ToPublic(*record);
        return base::MakeError(Code::kNotFound, "there is no resource {}", base::Quoted(name));
    });
}

Result<std::vector<ResourceInfo>> Resources::List() {
    return Try([&]() -> Result<std::vector<ResourceInfo>> {
        std::vector<ResourceInfo> all;
        for (const store::ResourceRecord& record : store_->Resources().List()) {
            all.push_back(ToPublic(record));
        }
        return all;
    });
}

Result<bool> Resources::Remove(std::string_view name) {
    return Try([&]() -> Result<bool> {
        return node::ResourceClient(store_->Resources(), *wake_).Remove(name, kActor);
    });
}

Result<bool> Resources::Open(std::string_view name) {
    return Try([&]() -> Result<bool> {
        return node::ResourceClient(store_->Resources(), *wake_).Reopen(name, kActor);
    });
}

Result<bool> Resources::Close(std::string_view name, Duration length, std::string_view reason) {
    return Try([&]() -> Result<bool> {
        return node::ResourceClient(store_->Resources(), *wake_)
            .Close(name, length, reason, kActor);
    });
}

node::OwnWorker Engine::Impl::Own() {
    std::lock_guard guard(lifecycle);
    if (!worker) return std::nullopt;
    return node::Claiming{worker->offered(), worker->running()};
}

Result<TaskWait> Engine::Why(TaskId task) {
    return Try([&]() -> Result<TaskWait> {
        auto why = node::ExplainTask(*impl_->store, task, impl_->Own());
        if (!why) return base::MakeError(Code::kNotFound, "there is no task {}", task.value());
        TaskWait wait;
        wait.eligible = why->eligible;
        wait.workers = why->workers;
        for (node::WhyReason& one : why->reasons) {
            wait.reasons.push_back(
                {.condition = std::move(one.name),
                 .text = std::move(one.text),
                 .detail = std::move(one.detail),
                 .cure = std::move(one.cure),
                 .workers = one.workers,
                 .eligible = false}
            );
        }
        if (why->ahead) {
            wait.ahead = why->ahead->tasks;
            wait.more_ahead = why->ahead->more;
            wait.starts_in = why->ahead->takes;
            wait.estimate = std::move(why->ahead->estimate);
        }
        return wait;
    });
}

Result<std::vector<Reason>> Engine::Explain(TaskId task) {
    auto wait = Why(task);
    if (!wait) return wait.error();
    std::vector<Reason> reasons = std::move(wait->reasons);
    if (wait->eligible) {
        auto condition = model::Condition::kEligible;
        reasons.push_back(
            {.condition = std::string(model::ConditionName(condition)),
             .text = std::string(model::ConditionText(condition)),
             .detail = {},
             .cure = {},
             .workers = wait->workers,
             .eligible = true}
        );
    }
    return reasons;
}

std::vector<ProbeInfo> Engine::Probes() const {
    return impl_->probes ? impl_->probes->Look() : std::vector<ProbeInfo>();
}

}  // namespace stint
