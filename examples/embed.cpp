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

void Bind(sqlite3_stmt* statement, int place, const std::string& text) {
    sqlite3_bind_text(statement, place, text.data(), static_cast<int>(text.size()), nullptr);
}
void Bind(sqlite3_stmt* statement, int place, int number) {
    sqlite3_bind_int(statement, place, number);
}

// One statement. Its values are bound: they never become part of the SQL.
template <class... Values>
stint::Result<void> Execute(
    stint::Transaction& transaction, const char* sql, const Values&... values
) {
    auto* database = static_cast<sqlite3*>(transaction.native());
    sqlite3_stmt* statement = nullptr;
    int code = sqlite3_prepare_v2(database, sql, -1, &statement, nullptr);
    if (code == SQLITE_OK) {
        [[maybe_unused]] int place = 0;
        (Bind(statement, ++place, values), ...);
        code = sqlite3_step(statement);
    }
    stint::Error error{stint::Code::kFailed, sqlite3_errmsg(database)};
    sqlite3_finalize(statement);
    if (code != SQLITE_DONE) return error;
    return {};
}

// [submit]
stint::Result<void> PlaceOrder(stint::Engine& engine, const Order& order, bool change_of_mind) {
    return engine.Write([&](stint::Transaction& transaction) -> stint::Result<void> {
        auto stored = Execute(transaction, "INSERT INTO orders(item) VALUES (?)", order.item);
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
        auto charged = Execute(transaction, "UPDATE total SET cents = cents + ?", order.cents);
        if (!charged) return charged;
        return context.CompleteIn(transaction, order.cents);  // refused if the lease was lost
    });
    if (!done) return stint::Failed{.message = done.error().message};
    return order.cents;
}
// [complete]

stint::Result<void> MakeTables(stint::Transaction& transaction) {
    for (const char* sql :
         {"CREATE TABLE orders(item TEXT)",
          "CREATE TABLE total(cents INT)",
          "INSERT INTO total VALUES (0)"}) {
        if (auto made = Execute(transaction, sql); !made) return made;
    }
    return {};
}

}  // namespace

int main() {
    stint::Engine engine({.store = "sqlite:shop.db"});
    engine.Handle(kCharge, [&](stint::Context& context, const Order& order) {
        return Charge(engine, context, order);
    });
    engine.Write(MakeTables).value();
    engine.Start();

    PlaceOrder(engine, {.item = "lamp, 5' tall", .cents = 4900}, false).value();
    auto refused = PlaceOrder(engine, {.item = "sofa", .cents = 99900}, true);
    std::cout << "second order: " << refused.error().message << '\n';

    auto run = engine.Submit(kCharge, {.item = "gift wrap", .cents = 250}).value();
    std::cout << "charged " << run.Wait().value() << " cents\n";
    engine.Stop();
}
