// A transaction on a Connection. Rolls back unless committed.
//
// BEGIN and the settings ride along with the first statement, COMMIT may ride along with the last:
// a transaction of one statement is one round trip.
#pragma once

#include <chrono>

#include "postgres/connection.h"

namespace stint::postgres {

struct TransactionOptions {
    // Per statement; zero = none. Lifted before COMMIT: a cancelled COMMIT that waits for a standby
    // would be visible without being replicated.
    std::chrono::milliseconds statement_timeout{30'000};
    std::chrono::milliseconds lock_timeout{0};
    bool read_only = false;
};

class Transaction {
public:
    explicit Transaction(Connection& connection, const TransactionOptions& options = {});
    ~Transaction();
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;

    Rows Query(const Statement& statement, const Params& params = {});
    // The statement and COMMIT in one round trip.
    Rows QueryAndCommit(const Statement& statement, const Params& params = {});
    // Throws OutcomeUnknown when the answer is lost.
    void Commit();
    void Rollback() noexcept;

    Connection& connection() { return connection_; }

private:
    Rows Send(const Statement* statement, const Params* params, bool commit);

    Connection& connection_;
    TransactionOptions options_;
    Params settings_;
    Statement apply_settings_;
    bool begun_ = false;
    bool over_ = false;
};

}  // namespace stint::postgres
