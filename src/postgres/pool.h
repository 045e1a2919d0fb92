// A few connections for many threads, and some that only emergencies may use.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "postgres/connection.h"

namespace stint::postgres {

struct PoolOptions {
    ConnectOptions connect;
    int size = 4;
    int reserved = 1;  // on top of `size`; only AcquireReserved() gives them out
    std::chrono::milliseconds acquire_timeout{10'000};
};

class Pool {
public:
    // A connection on loan; goes back at the end of its life, or is closed if it became unusable.
    class Loan {
    public:
        Loan(Pool& pool, std::unique_ptr<Connection> connection, bool reserved)
            : pool_(&pool), connection_(std::move(connection)), reserved_(reserved) {}
        ~Loan() {
            if (connection_) pool_->Return(std::move(connection_), reserved_);
        }
        Loan(Loan&&) = default;
        Loan& operator=(Loan&&) = delete;
        Connection& operator*() const { return *connection_; }
        Connection* operator->() const { return connection_.get(); }

    private:
        Pool* pool_;
        std::unique_ptr<Connection> connection_;
        bool reserved_;
    };

    explicit Pool(const PoolOptions& options);
    ~Pool();

    // Waits for a free one; opens one where there is room. Throws ConnectionLost when the server
    // cannot be reached or none became free in time.
    Loan Acquire() { return Take(false); }
    Loan AcquireReserved() { return Take(true); }

    // Closes the idle ones, e.g. after the schema changed under their prepared statements.
    void Forget();
    int open() const;

private:
    struct Side {
        int limit = 0;
        int lent = 0;
        std::vector<std::unique_ptr<Connection>> idle;
    };

    Loan Take(bool reserved);
    void Return(std::unique_ptr<Connection> connection, bool reserved);
    Side& side(bool reserved) { return reserved ? reserve_ : normal_; }

    const PoolOptions options_;
    mutable std::mutex mutex_;
    std::condition_variable freed_;  // guarded by mutex_, as are the two below
    Side normal_;
    Side reserve_;
};

}  // namespace stint::postgres
