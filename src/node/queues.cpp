// stint::Queues: the public words for the orders of store::ResourceStore.
#include <stint/queue.h>

#include "node/engine_impl.h"
#include "node/try.h"
#include "node/why.h"
#include "store/resources.h"

namespace stint {

namespace {

constexpr std::string_view kActor = "engine";

QueueTurns ToPublic(const model::QueueOrder& order) {
    return {.fair = order.fair, .weights = order.weights, .aging = order.aging};
}

std::map<std::string, model::QueueOrder> ByQueue(store::Store& store) {
    std::map<std::string, model::QueueOrder> orders;
    for (model::QueueOrder& order : store.Resources().Orders()) {
        std::string queue = order.queue;
        orders[queue] = std::move(order);
    }
    return orders;
}

}  // namespace

struct Queues::Body {
    store::Store* store;
    std::function<node::OwnWorker()> own;
};

Queues Engine::queues() {
    return Queues(std::make_shared<Queues::Body>(Queues::Body{
        impl_->store.get(), [impl = impl_.get()] { return impl->Own(); }}));
}

Result<QueueWait> Queues::Why(std::string_view queue) {
    return node::Try([&]() -> Result<QueueWait> {
        node::QueueWhy why = node::ExplainQueue(*body_->store, std::string(queue), body_->own());
        QueueWait wait;
        wait.waiting = why.waiting;
        wait.workers = why.workers;
        wait.estimate = why.looked_at < why.waiting;
        for (node::QueueShare& one : why.shares) {
            wait.shares.push_back(
                {.condition = std::move(one.condition),
                 .text = std::move(one.text),
                 .detail = std::move(one.detail),
                 .cure = std::move(one.cure),
                 .tasks = one.tasks,
                 .example = one.example}
            );
        }
        return wait;
    });
}

Result<void> Queues::SetTurns(std::string_view queue, const QueueTurns& turns) {
    return node::Try([&]() -> Result<void> {
        model::QueueOrder order{
            .queue = std::string(queue),
            .fair = turns.fair || !turns.weights.empty(),
            .weights = turns.weights,
            .aging = turns.aging};
        return body_->store->Resources().SetOrder(order, kActor);
    });
}

Result<QueueTurns> Queues::Turns(std::string_view queue) {
    return node::Try([&]() -> Result<QueueTurns> {
        auto orders = ByQueue(*body_->store);
        const model::QueueOrder* order = model::OrderOf(orders, std::string(queue));
        return order == nullptr ? QueueTurns{} : ToPublic(*order);
    });
}

Result<std::map<std::string, QueueTurns>> Queues::AllTurns() {
    return node::Try([&]() -> Result<std::map<std::string, QueueTurns>> {
        std::map<std::string, QueueTurns> all;
        for (const auto& [queue, order] : ByQueue(*body_->store)) all[queue] = ToPublic(order);
        return all;
    });
}

Result<bool> Queues::RemoveTurns(std::string_view queue) {
    return node::Try([&]() -> Result<bool> {
        return body_->store->Resources().RemoveOrder(queue, kActor);
    });
}

}  // namespace stint
