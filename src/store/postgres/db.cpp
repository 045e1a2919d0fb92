#include "store/postgres/db.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

#include "base/clock.h"

namespace stint::store::pg {

namespace {

constexpr int kTries = 8;

postgres::PoolOptions ForPool(const PostgresOptions& options, int size, int reserved) {
    postgres::PoolOptions pool;
    pool.connect.url = options.url;
    pool.connect.prepare = options.prepare;
    // Plans are part of the design: a claim that was planned while the tables were empty must not
    // fetch and sort a backlog later, and the price put on that must not start the compiler.
    pool.connect.settings = {
        {"plan_cache_mode", "force_generic_plan"},
        {"enable_seqscan", "off"},
        {"enable_bitmapscan", "off"},
        {"jit", "off"},
    };
    pool.size = std::max(1, size);
    pool.reserved = reserved;
    pool.acquire_timeout = options.acquire_timeout;
    return pool;
}

// "… (part) = (17)": the words around it are the server's language.
std::optional<int> PartOf(std::string_view detail) {
    std::size_t at = detail.find("(part) = (");
    if (at == std::string_view::npos) return std::nullopt;
    detail.remove_prefix(at + 10);
    int part = 0;
    auto [rest, error] = std::from_chars(detail.data(), detail.data() + detail.size(), part);
    if (error != std::errc{}) return std::nullopt;
    return part;
}

}  // namespace

void Pause(std::chrono::milliseconds time) {
    base::Clock& clock = base::SystemClock();
    base::Instant until = clock.Now() + time;
    std::mutex mutex;
    std::condition_variable_any nobody;
    std::unique_lock lock(mutex);
    while (clock.Now() < until) clock.WaitUntil(lock, nobody, std::stop_token(), until);
}

Db::Db(const PostgresOptions& options)
    : sql(options.schema),
      pool_(ForPool(options, options.connections, std::max(1, options.reserved))),
      vital_(ForPool(options, options.vital, 0)),
      hosts_(ForPool(options, options.for_hosts, 0)) {
}

postgres::Pool::Loan Db::Acquire(Use use) {
    if (use == Use::kVital) return vital_.Acquire();
    return use == Use::kAside ? pool_.AcquireReserved() : pool_.Acquire();
}

std::string Db::Address() {
    return Repeat(Use::kCommon, [](postgres::Connection& connection) {
        return connection.address();
    });
}

Rows Db::Once(const postgres::Statement& statement, const Params& params) {
    return Repeat(Use::kCommon, [&](postgres::Connection& connection) {
        return connection.Query(statement, params, postgres::Commits::kNo);
    });
}

Rows Db::Read(const postgres::Statement& statement, const Params& params) {
    return Repeat(Use::kCommon, [&](postgres::Connection& connection) {
        return connection.Query(statement, params, postgres::Commits::kNo);
    });
}

Rows Db::ReadVital(const postgres::Statement& statement, const Params& params) {
    return Repeat(Use::kVital, [&](postgres::Connection& connection) {
        return connection.Query(statement, params, postgres::Commits::kNo);
    });
}

Rows Db::ReadAside(const postgres::Statement& statement, const Params& params) {
    return Repeat(Use::kAside, [&](postgres::Connection& connection) {
        return connection.Query(statement, params, postgres::Commits::kNo);
    });
}

Rows Db::ReadPlanned(const postgres::Statement& statement, const Params& params) {
    static const postgres::Statement plan{
        "",
        "SELECT set_config('plan_cache_mode', 'force_custom_plan', true), "
        "set_config('enable_seqscan', 'on', true), set_config('enable_bitmapscan', 'on', true)"};
    return ReadWith(plan, statement, params);
}

Rows Db::ReadRange(const postgres::Statement& statement, const Params& params) {
    static const postgres::Statement plan{
        "", "SELECT set_config('plan_cache_mode', 'force_custom_plan', true)"};
    return ReadWith(plan, statement, params);
}

Rows Db::ReadWith(
    const postgres::Statement& plan, const postgres::Statement& statement, const Params& params
) {
    postgres::Statement unnamed{"", statement.sql};
    TransactionOptions options;
    options.read_only = true;
    return Run(
        [&](Transaction& transaction) {
            transaction.Defer(plan);
            return transaction.Query(unnamed, params);
        },
        options
    );
}

void Db::MakeLeaf(const postgres::SqlError& error) {
    std::optional<int> part = PartOf(error.detail());
    if (error.table().empty() || !part) throw postgres::SqlError(error);
    Params params;
    params.Text(error.table()).Int4(*part);
    RunAside([&](Transaction& transaction) { transaction.Query(sql.make_leaf, params); });
}

void Db::Recover(int tries, bool aside) {
    try {
        throw;
    } catch (const postgres::SqlError& error) {
        bool again = tries < kTries;
        switch (error.fault()) {
            case postgres::Fault::kRetry:
            case postgres::Fault::kStalePlan:
            // Two transactions made the same row: one of them finds it the next time.
            case postgres::Fault::kUnique:
                break;
            case postgres::Fault::kNoPartition:
                if (!PartOf(error.detail())) throw Unstorable(error.what());
                if (again) MakeLeaf(error);
                break;
            case postgres::Fault::kData:
                throw Unstorable(error.what());
            case postgres::Fault::kSkip:
                throw LockHeld(error.what());
            case postgres::Fault::kBackOff:
            case postgres::Fault::kTimeout:
                throw Unavailable(error.what());
            default:
                throw;
        }
        if (!again) throw Unavailable(error.what());
        if (tries > 1) Pause(std::chrono::milliseconds{1 << tries});
    } catch (const postgres::ConnectionLost& lost) {
        // Nothing has happened yet; the pool may have held connections to a server that is gone.
        if (tries > 1) throw Unavailable(lost.what());
    } catch (const postgres::OutcomeUnknown& unknown) {
        // A caller must not hear "unknown" of a transaction that was not yet begun.
        if (aside && tries == 1) return;
        if (aside) throw Unavailable(unknown.what());
        throw CommitUnknown(unknown.what());
    }
}

}  // namespace stint::store::pg
