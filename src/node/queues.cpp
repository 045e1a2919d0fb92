// stint::Queues: the public words for the orders of store::ResourceStore.
#include <stint/queue.h>

#include "node/engine_impl.h"
#include "node/try.h"
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

Queues Engine::queues() {
    return Queues(*impl_->store);
}

Result<void> Queues::SetTurns(std::string_view queue, const QueueTurns& turns) {
    return node::Try([&]() -> Result<void> {
        model::QueueOrder order{
            .queue = std::string(queue),
            .fair = turns.fair || !turns.weights.empty(),
            .weights = turns.weights,
            .aging = turns.aging};
        return store_->Resources().SetOrder(order, kActor);
    });
}

Result<QueueTurns> Queues::Turns(std::string_view queue) {
    return node::Try([&]() -> Result<QueueTurns> {
        auto orders = ByQueue(*store_);
        const model::QueueOrder* order = model::OrderOf(orders, std::string(queue));
        return order == nullptr ? QueueTurns{} : ToPublic(*order);
    });
}

Result<std::map<std::string, QueueTurns>> Queues::AllTurns() {
    return node::Try([&]() -> Result<std::map<std::string, QueueTurns>> {
        std::map<std::string, QueueTurns> all;
        for (const auto& [queue, order] : ByQueue(*store_)) all[queue] = ToPublic(order);
        return all;
    });
}

Result<bool> Queues::RemoveTurns(std::string_view queue) {
    return node::Try([&]() -> Result<bool> {
        return store_->Resources().RemoveOrder(queue, kActor);
    });
}

}  // namespace stint
