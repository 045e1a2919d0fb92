// stint queue order: how the tasks of a queue take turns.
#include <charconv>

#include "base/text.h"
#include "cli/queue_commands.h"
#include "model/time_text.h"
#include "node/resource_client.h"

namespace stint::cli {

namespace {

struct OrderFlags {
    std::string queue;
    std::optional<std::string> fair, aging;
    std::vector<std::string> weights;
    bool remove = false;

    bool Change() const { return fair || aging || !weights.empty(); }
};

template <class T>
std::optional<T> NumberIn(std::string_view text) {
    T number{};
    const char* end = text.data() + text.size();
    auto [rest, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc{} || rest != end) return std::nullopt;
    return number;
}

void TakeFair(const std::string& text, model::QueueOrder& order) {
    if (text != "yes" && text != "no") {
        throw CommandError(
            kUsage, fmt::format("--fair is {}; it must be yes or no", base::Quoted(text))
        );
    }
    order.fair = text == "yes";
    if (!order.fair) order.weights.clear();
}

// "7=3", or "7=none" for a tenant that has the weight of all others again.
void TakeWeight(const std::string& text, model::QueueOrder& order) {
    std::size_t mark = text.find('=');
    auto tenant = NumberIn<std::int64_t>(std::string_view(text).substr(0, mark));
    std::string weight = mark == text.npos ? std::string() : text.substr(mark + 1);
    auto number = NumberIn<int>(weight);
    if (!tenant || (!number && weight != "none")) {
        throw CommandError(
            kUsage,
            fmt::format(
                "--weight is {}; write TENANT=N, as in 7=3, or TENANT=none", base::Quoted(text)
            )
        );
    }
    order.fair = true;
    if (number) {
        order.weights[TenantId(*tenant)] = *number;
    } else {
        order.weights.erase(TenantId(*tenant));
    }
}

void TakeAging(const std::string& text, model::QueueOrder& order) {
    order.aging = Duration::zero();
    if (text == "none") return;
    auto parsed = model::ParseDuration(text);
    if (!parsed) throw CommandError(kUsage, "--aging: " + parsed.error().message);
    if (*parsed <= Duration::zero()) {
        throw CommandError(
            kUsage,
            fmt::format(
                "--aging is {}; it must be longer than nothing, as in 5m, or none",
                base::Quoted(text)
            )
        );
    }
    order.aging = *parsed;
}

std::string WeightsText(const model::QueueOrder& order) {
    std::vector<std::string> weights;
    for (const auto& [tenant, weight] : order.weights) {
        weights.push_back(fmt::format("{}={}", tenant.value(), weight));
    }
    return fmt::format("{}", fmt::join(weights, " "));
}

std::string AgingText(const model::QueueOrder& order) {
    if (order.aging <= Duration::zero()) return "-";
    return fmt::format("a step of priority each {}", model::FormatDuration(order.aging));
}

std::string FairText(const model::QueueOrder& order) {
    if (!order.fair) return "no";
    return order.weights.empty() ? "yes" : fmt::format("yes, by weight {}", WeightsText(order));
}

base::OrderedJson JsonOf(const std::string& queue, const model::QueueOrder& order) {
    base::OrderedJson json = {{"queue", queue}};
    json.update(node::ToJson(order));
    return json;
}

void PrintOrder(
    const Invocation& invocation, const std::string& queue, const model::QueueOrder& order
) {
    invocation.out().Print(
        {{"queue", {queue}},
         {"order of", {order.queue.empty() ? "-" : order.queue}},
         {"fair", {FairText(order)}},
         {"aging", {AgingText(order)}}},
        JsonOf(queue, order),
        queue
    );
}

int ListOrders(const Invocation& invocation, node::Client& client) {
    Listing listing;
    listing.name = "orders";
    listing.headers = {"QUEUE", "FAIR", "AGING"};
    for (const auto& [queue, order] : client.Resources().Orders()) {
        listing.rows.push_back({{queue}, {FairText(order)}, {AgingText(order)}});
        listing.objects.push_back(JsonOf(queue, order));
        listing.ids.push_back(queue);
    }
    invocation.out().Print(listing);
    if (listing.rows.empty()) {
        invocation.Say("no queue has an order of its own: by priority, then first come");
    }
    return kOk;
}

int RemoveOrder(Invocation& invocation, const OrderFlags& flags) {
    if (flags.Change()) {
        throw CommandError(kUsage, "--remove takes all of it away; leave the other flags out");
    }
    node::Client client = invocation.LookAtStore();
    if (!client.Resources().RemoveOrder(flags.queue, invocation.actor())) {
        throw CommandError(
            kNotFound, fmt::format("queue {} has no order of its own", base::Quoted(flags.queue))
        );
    }
    invocation.Say(
        "removed; {} now",
        flags.queue == "*" ? "by priority, then first come" : "the order of * holds, where there is"
    );
    return kOk;
}

int Order(Invocation& invocation, const OrderFlags& flags) {
    if (flags.queue.empty()) {
        if (flags.remove || flags.Change()) {
            throw CommandError(kUsage, "name the queue, or '*' for all that have no order");
        }
        node::Client client = invocation.LookAtStore();
        return ListOrders(invocation, client);
    }
    if (flags.remove) return RemoveOrder(invocation, flags);
    if (!flags.Change()) {
        node::Client client = invocation.LookAtStore();
        auto orders = client.Resources().Orders();
        const model::QueueOrder* order = model::OrderOf(orders, flags.queue);
        PrintOrder(invocation, flags.queue, order == nullptr ? model::QueueOrder{} : *order);
        return kOk;
    }
    node::Client client = invocation.OpenStore();
    auto orders = client.Resources().Orders();
    model::QueueOrder order = orders[flags.queue];
    order.queue = flags.queue;
    if (flags.fair) TakeFair(*flags.fair, order);
    for (const std::string& weight : flags.weights) TakeWeight(weight, order);
    if (flags.aging) TakeAging(*flags.aging, order);
    Need(client.Resources().SetOrder(order, invocation.actor()));
    PrintOrder(invocation, flags.queue, order);
    return kOk;
}

void Define(Syntax& syntax, OrderFlags& flags) {
    syntax.Word("QUEUE", flags.queue, "name of the queue, or '*'; all that are set when left out");
    syntax.Text("--fair", flags.fair, "yes|no", "tenants take turns, whoever came first");
    syntax.Repeated(
        "--weight", flags.weights, "TENANT=N", "this tenant's share, 1 if not said; =none takes it"
    );
    syntax.Text(
        "--aging", flags.aging, "DURATION", "waiting this long is one step of priority; or none"
    );
    syntax.Switch("--remove", flags.remove, "the order of '*' holds again, or none");
}

}  // namespace

std::string OrderText(const model::QueueOrder* order) {
    if (order == nullptr) return "-";
    std::vector<std::string> words;
    if (order->fair)
        words.push_back(order->weights.empty() ? "fair" : "fair " + WeightsText(*order));
    if (order->aging > Duration::zero()) {
        words.push_back("ages " + model::FormatDuration(order->aging));
    }
    return words.empty() ? "-" : fmt::format("{}", fmt::join(words, ", "));
}

base::OrderedJson OrderJson(const model::QueueOrder* order) {
    return order == nullptr ? base::OrderedJson() : node::ToJson(*order);
}

void AddQueueOrder(Program& program, CLI::App& group) {
    program.Command<OrderFlags>(
        group,
        "order",
        "How tasks of a queue take turns: by tenants' shares, by age; what is not named stays.",
        "stint queue order mail --weight 7=3 --weight 9=1\n"
        "stint queue order '*' --fair yes --aging 5m\n"
        "stint queue order mail --remove\n"
        "stint queue order",
        Define,
        Order
    );
}

}  // namespace stint::cli
