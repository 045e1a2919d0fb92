// An old view of a SQLite file that somebody keeps open: for benchmarks.
#pragma once

#include <string>

#include "sqlite/connection.h"
#include "sqlite/transaction.h"

namespace stint::store {

// While it lives, the write-ahead log cannot begin anew, and grows.
class SqlitePin {
public:
    // Throws Unavailable.
    explicit SqlitePin(const std::string& path);

private:
    sqlite::Connection connection_;
    sqlite::ReadTransaction view_;
};

}  // namespace stint::store
