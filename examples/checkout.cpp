// A workflow: reserve, charge, wait for the parcel, and undo what was done when something fails. It
// may take days; between the steps nothing of it runs, and the process may end at any line.
#include <stint/stint.h>

#include <chrono>
#include <iostream>
#include <thread>

using namespace std::chrono_literals;

struct Order {
    std::string customer;
    std::string article;
    int cents = 0;
};
struct Reservation {
    std::string shelf;
};
struct Payment {
    std::string receipt;
};
struct Shipment {
    std::string parcel;
};
struct Result {
    std::string state;
    std::string parcel;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Order, customer, article, cents)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Reservation, shelf)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Payment, receipt)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Shipment, parcel)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Result, state, parcel)

inline constexpr stint::Task<Order, Reservation> kReserve{"shop.reserve"};
inline constexpr stint::Task<Reservation> kRelease{"shop.release"};
inline constexpr stint::Task<Order, Payment> kCharge{"shop.charge"};
inline constexpr stint::Task<Payment> kRefund{"shop.refund"};
inline constexpr stint::Task<Order, Result> kCheckout{"shop.checkout"};

namespace {

// [flow]
Result Checkout(stint::Flow& flow, const Order& order) {
    Reservation reserved = flow.Call("reserve", kReserve, order);
    Payment payment;
    try {
        payment = flow.Call("charge", kCharge, order);
    } catch (const stint::StepFailed& failed) {
        flow.Call("release", kRelease, reserved);
        return {.state = "not paid: " + failed.reason(), .parcel = {}};
    }
    auto shipped = flow.AwaitSignal<Shipment>("shipped", order.article == "lamp" ? 200ms : 72h);
    if (!shipped) {
        flow.Call("refund", kRefund, payment);
        flow.Call("release", kRelease, reserved);
        return {.state = "refunded", .parcel = {}};
    }
    flow.Run("thank", [&] { std::cout << order.customer << " is thanked once\n"; });
    return {.state = "shipped", .parcel = shipped->parcel};
}
// [flow]

void HandleAll(stint::Engine& engine) {
    engine.Handle(kReserve, [](stint::Context&, const Order& order) {
        return Reservation{.shelf = "shelf of " + order.article};
    });
    engine.Handle(kRelease, [](stint::Context&, const Reservation&) {});
    engine.Handle(kCharge, [](stint::Context& context, const Order& order) {
        if (order.cents > 100'000) throw stint::Permanent("the card says no");
        return Payment{.receipt = std::string(context.idempotency_key())};
    });
    engine.Handle(kRefund, [](stint::Context&, const Payment&) {});
    engine.Handle(kCheckout, Checkout);
}

bool WaitsForParcel(stint::Engine& engine, stint::TaskId id) {
    auto flow = engine.flows().Get(id);
    return flow && flow->flow.waits_for.starts_with("signal \"shipped\"");
}

}  // namespace

int main(int argc, char** argv) {
    std::string store = argc > 1 ? argv[1] : "sqlite:shop.db";
    stint::TaskId chair;
    {
        stint::Engine engine({.store = store});
        HandleAll(engine);
        engine.Start();
        chair = engine.Submit(kCheckout, {"Ann", "chair", 12'900}).value().id();
        while (!WaitsForParcel(engine, chair)) std::this_thread::sleep_for(10ms);
        std::cout << "the chair is paid, and this process ends\n";
    }
    stint::Engine engine({.store = store});  // another day, perhaps on another machine
    HandleAll(engine);
    engine.Start();
    engine.flows().Signal(chair, "shipped", Shipment{.parcel = "X17"}).value();
    Result result = engine.Find(kCheckout, chair).Wait().value();
    std::cout << "chair: " << result.state << " " << result.parcel << "\n";

    for (const Order& order : {Order{"Ben", "yacht", 9'000'000}, Order{"Eve", "lamp", 1'900}}) {
        Result other = engine.Submit(kCheckout, order).value().Wait().value();
        std::cout << order.article << ": " << other.state << "\n";
    }
    auto steps = engine.flows().Get(chair).value().steps;
    std::cout << "recorded of the chair:";
    for (const auto& step : steps) std::cout << " " << step.name;
    std::cout << "\n";
}
