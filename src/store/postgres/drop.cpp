#include "store/postgres/drop.h"

#include <fmt/format.h>

#include "postgres/connection.h"
#include "postgres/error.h"
#include "store/store.h"

namespace stint::store {

void DropPostgres(const std::string& url, const std::string& schema) {
    bool ours = schema.starts_with("stint_bench_") || schema.starts_with("stint_test_");
    bool plain = schema.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == schema.npos;
    if (!ours || !plain) {
        throw std::runtime_error(fmt::format("schema \"{}\" is not one to throw away", schema));
    }
    postgres::ConnectOptions connect;
    connect.url = url;
    connect.prepare = postgres::ConnectOptions::Prepare::kNever;
    try {
        auto connection = postgres::Connection::Open(connect);
        connection->Script(fmt::format("DROP SCHEMA IF EXISTS {} CASCADE", schema));
    } catch (const postgres::ConnectionLost& lost) {
        throw Unavailable(lost.what());
    } catch (const postgres::OutcomeUnknown& unknown) {
        throw Unavailable(unknown.what());
    }
}

}  // namespace stint::store
