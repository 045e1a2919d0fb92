#include "postgres/pool.h"

#include "base/check.h"

namespace stint::postgres {

Pool::Pool(const PoolOptions& options) : options_(options) {
    CHECK(options.size > 0 && options.reserved >= 0);
    normal_.limit = options.size;
    reserve_.limit = options.reserved;
}

Pool::~Pool() {
    CHECK_WHY(
        normal_.lent == 0 && reserve_.lent == 0, "a pool is closed while connections are out"
    );
}

Pool::Loan Pool::Take(bool reserved) {
    std::unique_ptr<Connection> connection;
    {
        std::unique_lock lock(mutex_);
        Side& from = side(reserved);
        bool free =
            freed_.wait_for(lock, options_.acquire_timeout, [&] { return from.lent < from.limit; });
        if (!free) {
            throw ConnectionLost("no free connection to PostgreSQL in time");
        }
        ++from.lent;
        // The last returned first: the others may then be let go by the server or a firewall.
        while (!from.idle.empty() && !connection) {
            connection = std::move(from.idle.back());
            from.idle.pop_back();
            if (!connection->StillThere()) connection.reset();
        }
    }
    if (connection) return Loan(*this, std::move(connection), reserved);
    try {
        return Loan(*this, Connection::Open(options_.connect), reserved);
    } catch (...) {
        std::lock_guard lock(mutex_);
        --side(reserved).lent;
        freed_.notify_all();  // both kinds of waiter share the condition
        throw;
    }
}

void Pool::Return(std::unique_ptr<Connection> connection, bool reserved) {
    bool keep = connection->usable() && !connection->in_transaction();
    {
        std::lock_guard lock(mutex_);
        Side& to = side(reserved);
        --to.lent;
        if (keep) to.idle.push_back(std::move(connection));
    }
    // Both kinds of waiter share the condition.
    freed_.notify_all();
}

void Pool::Forget() {
    std::vector<std::unique_ptr<Connection>> closing;
    std::lock_guard lock(mutex_);
    for (Side* each : {&normal_, &reserve_}) {
        for (auto& connection : each->idle) closing.push_back(std::move(connection));
        each->idle.clear();
    }
}

int Pool::open() const {
    std::lock_guard lock(mutex_);
    return normal_.lent + reserve_.lent +
           static_cast<int>(normal_.idle.size() + reserve_.idle.size());
}

}  // namespace stint::postgres
