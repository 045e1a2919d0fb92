// Connections of a benchmark beside those that it measures.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "postgres/connection.h"
#include "postgres/error.h"
#include "store/store.h"

namespace stint::store::pg {

// Runs `work`; a server that cannot be reached becomes Unavailable.
template <class Work>
auto WhileMeasuring(Work work) {
    try {
        return work();
    } catch (const postgres::ConnectionLost& lost) {
        throw Unavailable(lost.what());
    } catch (const postgres::OutcomeUnknown& unknown) {
        throw Unavailable(unknown.what());
    } catch (const postgres::SqlError& error) {
        throw Unavailable(error.what());
    }
}

inline std::unique_ptr<postgres::Connection> OpenForBench(const std::string& url) {
    return WhileMeasuring([&] {
        postgres::ConnectOptions connect;
        connect.url = url;
        connect.application_name = "stint bench";
        connect.prepare = postgres::ConnectOptions::Prepare::kNever;
        return postgres::Connection::Open(connect);
    });
}

inline postgres::Rows AskBench(
    postgres::Connection& connection, std::string_view sql, const postgres::Params& params = {}
) {
    postgres::Statement statement{"", std::string(sql)};
    return connection.Query(statement, params, postgres::Commits::kNo);
}

}  // namespace stint::store::pg
