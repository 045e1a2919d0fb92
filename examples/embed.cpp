// A program with tables of its own. The order and the task that charges it are one transaction, and
// so are the handler's writes and the task's completion: effects happen exactly once.
#include <sqlite3.h>
#include <stint/stint.h>

#include <iostream>

struct Order {
    std::string item;
    int cents = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Order, item, cents)

inline constexpr stint::Task<Order, int> kCharge{"shop.charge", {.queue = "payments"}};

namespace {

stint::Result<void> Execute(stint::Transaction& transaction, const std::string& sql) {
    char* message = nullptr;
    auto* database = static_cast<sqlite3*>(transaction.native());
    if (sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &message) == SQLITE_OK) return {};
    stint::Error error{stint::Code::kFailed, message != nullptr ? message : "unknown"};
    sqlite3_free(message);
    return error;
}

// [submit]
stint::Result<void> PlaceOrder(stint::Engine& engine, const Order& order, bool change_of_mind) {
    return engine.Write([&](stint::Transaction& transaction) -> stint::Result<void> {
        auto stored =
            Execute(transaction, "INSERT INTO orders(item) VALUES ('" + order.item + "')");
        if (!stored) return stored;
        auto run = engine.Submit(kCharge, order, {.in = &transaction});
        if (!run) return run.error();
        if (change_of_mind) return stint::Error{stint::Code::kCancelled, "customer left"};
        return {};  // commits the order and its task together
    });
}
// [submit]

// [complete]
stint::Outcome<int> Charge(stint::Engine& engine, stint::Context& context, const Order& order) {
    auto done = engine.Write([&](stint::Transaction& transaction) -> stint::Result<void> {
        auto charged =
            Execute(transaction, "UPDATE total SET cents = cents + " + std::to_string(order.cents));
        if (!charged) return charged;
        return context.CompleteIn(transaction, order.cents);  // refused if the lease was lost
    });
    if (!done) return stint::Failed{.message = done.error().message};
    return order.cents;
}
// [complete]

}  // namespace

int main() {
    stint::Engine engine({.store = "sqlite:shop.db"});
    engine.Handle(kCharge, [&](stint::Context& context, const Order& order) {
        return Charge(engine, context, order);
    });
    engine
        .Write([](stint::Transaction& transaction) {
            return Execute(
                transaction,
                "CREATE TABLE orders(item TEXT); CREATE TABLE total(cents INT); INSERT INTO total "
                "VALUES (0)"
            );
        })
        .value();
    engine.Start();

    PlaceOrder(engine, {.item = "lamp", .cents = 4900}, false).value();
    auto refused = PlaceOrder(engine, {.item = "sofa", .cents = 99900}, true);
    std::cout << "second order: " << refused.error().message << '\n';

    auto run = engine.Submit(kCharge, {.item = "gift wrap", .cents = 250}).value();
    std::cout << "charged " << run.Wait().value() << " cents\n";
    engine.Stop();
}
