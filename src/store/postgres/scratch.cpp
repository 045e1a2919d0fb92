#include "store/postgres/scratch.h"

#include <fmt/format.h>

#include "postgres/error.h"
#include "stint_store_pg_bench_embedded.h"
#include "store/postgres/bench_connection.h"
#include "store/postgres/drop.h"
#include "store/store.h"

namespace stint::store {

using pg::AskBench;
using pg::OpenForBench;
using postgres::Connection;
using postgres::Params;
using postgres::Rows;

namespace {

void RequireRight(Connection& connection) {
    Rows rows = AskBench(connection, pg::bench::k_may_create);
    if (rows.Bool(0, 0)) return;
    throw NotAllowed(fmt::format(
        "role \"{}\" may not make a schema in database \"{}\", and a benchmark needs one of its "
        "own: GRANT CREATE ON DATABASE \"{}\" TO \"{}\", or measure the store itself with "
        "--in-place",
        rows.View(0, 1),
        rows.View(0, 2),
        rows.View(0, 2),
        rows.View(0, 1)
    ));
}

bool TryToDrop(const std::string& url, const std::string& schema) {
    try {
        DropPostgres(url, schema);
        return true;
    } catch (const std::exception&) {
        return false;  // it is named to the user, who can do more
    }
}

}  // namespace

bool IsScratchName(std::string_view schema) {
    constexpr std::string_view kPrefix = "stint_bench_";
    if (!schema.starts_with(kPrefix)) return false;
    schema.remove_prefix(kPrefix.size());
    std::size_t pid = schema.find('_');
    return pid != schema.npos && pid > 0 && schema.size() - pid - 1 == 8 &&
           schema.substr(0, pid).find_first_not_of("0123456789") == schema.npos &&
           schema.substr(pid + 1).find_first_not_of("0123456789abcdef") == schema.npos;
}

PostgresScratch::PostgresScratch(const std::string& url, const std::string& schema)
    : url_(url), schema_(schema), holder_(OpenForBench(url)) {
    pg::WhileMeasuring([&] {
        RequireRight(*holder_);
        Hold(*holder_, schema_);
    });
}

// False: another holds it. The transaction stays open either way.
bool PostgresScratch::Hold(Connection& connection, const std::string& schema) {
    connection.Script("BEGIN");
    bool held = AskBench(connection, pg::bench::k_hold, Params().Text(schema)).Bool(0, 0);
    // A statement with parameters keeps its snapshot until the next one comes, and with it every
    // row that dies meanwhile: this one needs none and ends that.
    connection.Script("SET LOCAL idle_in_transaction_session_timeout = 0");
    return held;
}

PostgresScratch::Left PostgresScratch::Sweep() {
    return pg::WhileMeasuring([&] {
        Left left;
        auto connection = OpenForBench(url_);
        Rows rows = AskBench(*connection, pg::bench::k_schemas);
        for (int i = 0; i < rows.size(); ++i) {
            std::string schema = rows.Text(i, 0);
            if (schema == schema_) continue;
            bool dead = Hold(*connection, schema);
            // Still under the lock: so nobody else removes it as well.
            bool removed =
                dead && rows.Bool(i, 1) && IsScratchName(schema) && TryToDrop(url_, schema);
            connection->Script("ROLLBACK");
            if (dead) (removed ? left.removed : left.stay).push_back(schema);
        }
        return left;
    });
}

}  // namespace stint::store
