// A transaction that the engine and its host share: what is submitted or completed through it
// happens if and only if the transaction commits.
#pragma once

#include <memory>

namespace stint {

namespace store {
class Transaction;
}

class Transaction {
public:
    explicit Transaction(store::Transaction* implementation);         // used by Engine::Write
    explicit Transaction(std::unique_ptr<store::Transaction> owned);  // used by Engine::Borrow
    ~Transaction();
    Transaction(Transaction&&) noexcept;
    Transaction& operator=(Transaction&&) noexcept;

    // The database connection the transaction runs on: sqlite3* or PGconn*. Write your own tables
    // through it; do not commit or roll back a transaction that Engine::Write began.
    void* native() const;

    store::Transaction& implementation() const { return *implementation_; }

private:
    std::unique_ptr<store::Transaction> owned_;
    store::Transaction* implementation_ = nullptr;
};

}  // namespace stint
