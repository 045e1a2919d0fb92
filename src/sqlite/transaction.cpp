#include "sqlite/transaction.h"

#include <exception>

#include "base/tallies.h"
#include "sqlite/error.h"

namespace stint::sqlite {

Transaction::Transaction(Connection& connection) : connection_(connection) {
    connection_.Cached("BEGIN IMMEDIATE").Run();
}

Transaction::~Transaction() {
    Rollback();
}

void Transaction::Commit() {
    connection_.Cached("COMMIT").Run();
    open_ = false;
    base::Count(base::ProcessTallies().commits);
}

void Transaction::Rollback() noexcept {
    if (!std::exchange(open_, false)) return;
    // A serious error (disk full, I/O) has already rolled back.
    if (!connection_.in_transaction()) return;
    try {
        connection_.Cached("ROLLBACK").Run();
    } catch (const Error&) {
        // Nothing more can be done: the connection's next BEGIN reports what is wrong.
    }
}

Savepoint::Savepoint(Connection& connection) : connection_(connection) {
    connection_.Cached("SAVEPOINT stint_member").Run();
}

Savepoint::~Savepoint() {
    if (!open_) return;
    try {
        Rollback();
    } catch (const Error&) {
        // The whole transaction is gone; the commit will say so.
    }
}

void Savepoint::Release() {
    connection_.Cached("RELEASE stint_member").Run();
    open_ = false;
}

void Savepoint::Rollback() {
    open_ = false;
    connection_.Cached("ROLLBACK TO stint_member").Run();
    connection_.Cached("RELEASE stint_member").Run();
}

ReadTransaction::ReadTransaction(Connection& connection) : connection_(connection) {
    connection_.Cached("BEGIN").Run();
}

ReadTransaction::~ReadTransaction() {
    try {
        connection_.Cached("COMMIT").Run();
    } catch (const Error&) {
        // A read transaction has nothing to lose.
    }
}

}  // namespace stint::sqlite
