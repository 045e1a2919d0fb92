// The store's SQL by name: queries/*.sql are sections that begin with "-- name: <name>".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sqlite/connection.h"

namespace stint::store::lite {

// Every one of them.
std::vector<std::string_view> QueryNames();
// The text of a query; a name that does not exist is our bug.
std::string_view QueryText(std::string_view name);
// The same for one period's tables: {p} is replaced by its number.
std::string QueryText(std::string_view name, std::int64_t period);

// The statement of a query, kept by the connection.
sqlite::Statement& Sql(sqlite::Connection& db, std::string_view name);
sqlite::Statement& Sql(sqlite::Connection& db, std::string_view name, std::int64_t period);
// The same for `rows` rows at once, of an INSERT of one; and of what says "= ?" at its end, for any
// of so many.
sqlite::Statement& SqlRows(
    sqlite::Connection& db, std::string_view name, std::int64_t period, std::size_t rows
);
sqlite::Statement& SqlAnyOf(sqlite::Connection& db, std::string_view name, std::size_t count);

// Forgets what was kept for a period that is gone.
void ForgetPeriod(sqlite::Connection& db, std::int64_t period);

}  // namespace stint::store::lite
