// Transactions that roll back unless told otherwise.
#pragma once

#include "sqlite/connection.h"

namespace stint::sqlite {

class Transaction {
public:
    // Takes the write lock at once: no later statement can fail for want of it.
    explicit Transaction(Connection& connection);
    ~Transaction();
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;

    void Commit();
    void Rollback() noexcept;

private:
    Connection& connection_;
    bool open_ = true;
};

// A part of a transaction that can fail alone.
class Savepoint {
public:
    explicit Savepoint(Connection& connection);
    ~Savepoint();
    Savepoint(const Savepoint&) = delete;
    Savepoint& operator=(const Savepoint&) = delete;

    void Release();
    void Rollback();

private:
    Connection& connection_;
    bool open_ = true;
};

// A consistent view over several reads.
class ReadTransaction {
public:
    explicit ReadTransaction(Connection& connection);
    ~ReadTransaction();
    ReadTransaction(const ReadTransaction&) = delete;
    ReadTransaction& operator=(const ReadTransaction&) = delete;

private:
    Connection& connection_;
};

}  // namespace stint::sqlite
