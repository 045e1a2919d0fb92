// How talking to the server can fail. Three types, because they call for three reactions.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "postgres/sqlstate.h"

namespace stint::postgres {

// The server answered with an error: the statement had no effect, its transaction is over.
class SqlError : public std::runtime_error {
public:
    SqlError(
        std::string sqlstate, std::string table, std::string detail, const std::string& message
    )
        : std::runtime_error(message),
          sqlstate_(std::move(sqlstate)),
          table_(std::move(table)),
          detail_(std::move(detail)) {}
    const std::string& sqlstate() const { return sqlstate_; }
    const std::string& table() const { return table_; }  // where it concerns one
    const std::string& detail() const { return detail_; }
    Fault fault() const { return Classify(sqlstate_); }

private:
    std::string sqlstate_;
    std::string table_;
    std::string detail_;
};

// The connection could not be made, or broke before anything could have been committed.
class ConnectionLost : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// The connection broke after a commit was sent and before its answer: it may have happened.
class OutcomeUnknown : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

}  // namespace stint::postgres
