// Making and upgrading the schema.
#include <fmt/format.h>

#include <algorithm>

#include "postgres/listener.h"
#include "postgres/transaction.h"
#include "store/postgres/postgres_store.h"
#include "store/postgres/sql.h"
#include "store/postgres/store_impl.h"

namespace stint::store {

namespace {

using pg::ForSchema;
using pg::Migration;
using postgres::Commits;
using postgres::Connection;
using postgres::Statement;

constexpr int kOldestServer = 140000;

void CheckName(const std::string& schema) {
    bool good = !schema.empty() && schema.size() <= 48 &&
                std::all_of(schema.begin(), schema.end(), [](unsigned char c) {
                    return std::isalnum(c) != 0 || c == '_';
                });
    if (good) return;
    throw std::runtime_error(fmt::format(
        "the schema is called \"{}\"; a name has 1 to 48 letters, digits and underscores", schema
    ));
}

// Whatever breaks off while a store is opened can be begun anew: the server is away, no more.
template <class Work>
auto WhileOpening(Work work) {
    try {
        return work();
    } catch (const postgres::ConnectionLost& lost) {
        throw Unavailable(lost.what());
    } catch (const postgres::OutcomeUnknown& unknown) {
        throw Unavailable(unknown.what());
    } catch (const CommitUnknown& unknown) {
        throw Unavailable(unknown.what());
    }
}

std::unique_ptr<Connection> Connect(const PostgresOptions& options) {
    CheckName(options.schema);
    postgres::ConnectOptions connect;
    connect.url = options.url;
    connect.prepare = postgres::ConnectOptions::Prepare::kNever;
    // A migration may have to wait for another node's.
    connect.reply_timeout = std::chrono::minutes{10};
    std::unique_ptr<Connection> connection =
        WhileOpening([&] { return Connection::Open(connect); });
    if (connection->server_version() < kOldestServer) {
        throw WrongSchema(fmt::format(
            "{} is PostgreSQL {}; 14 or later is needed",
            connection->address(),
            connection->server_version() / 10000
        ));
    }
    return connection;
}

// 0 = there is no schema yet. Asks the catalog's rows, not to_regclass(): a session remembers names
// that were not there, and waiting for another node's migration does not make it forget them.
int VersionOf(Connection& connection, const std::string& schema) {
    static const Statement there{
        "",
        "SELECT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid "
        "= "
        "c.relnamespace WHERE n.nspname = $1 AND c.relname = 'migration')"};
    if (!connection.Query(there, postgres::Params().Text(schema), Commits::kNo).Bool(0, 0))
        return 0;
    std::string table = postgres::QuoteName(schema) + ".migration";
    Statement newest{"", "SELECT coalesce(max(number), 0) FROM " + table};
    return static_cast<int>(connection.Query(newest, {}, Commits::kNo).Int(0, 0));
}

void RefuseNewer(int version, const PostgresOptions& options) {
    if (version <= PostgresSchemaVersion()) return;
    throw WrongSchema(fmt::format(
        "schema \"{}\" has version {} and this program knows {}: use a newer program",
        options.schema,
        version,
        PostgresSchemaVersion()
    ));
}

std::string Preamble(const std::string& schema) {
    return fmt::format(
        "CREATE SCHEMA IF NOT EXISTS {0};\nCREATE TABLE IF NOT EXISTS {0}.migration(number int "
        "PRIMARY KEY, "
        "name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT clock_timestamp());\n",
        postgres::QuoteName(schema)
    );
}

std::string TextOf(const Migration& migration, const std::string& schema) {
    return fmt::format(
        "-- {:03} {}\n{}\nINSERT INTO {}.migration(number, name) VALUES ({}, '{}');\n",
        migration.number,
        migration.name,
        ForSchema(migration.text, schema),
        postgres::QuoteName(schema),
        migration.number,
        migration.name
    );
}

}  // namespace

int PostgresSchemaVersion() {
    return pg::Migrations().back().number;
}

std::vector<std::string> PendingMigrations(const PostgresOptions& options) {
    std::unique_ptr<Connection> connection = Connect(options);
    int version = WhileOpening([&] { return VersionOf(*connection, options.schema); });
    RefuseNewer(version, options);
    std::vector<std::string> pending;
    if (version == 0) pending.push_back(Preamble(options.schema));
    for (const Migration& migration : pg::Migrations()) {
        if (migration.number > version) pending.push_back(TextOf(migration, options.schema));
    }
    return pending;
}

namespace {

// True: done, by us or by somebody else. False: a lock was not to be had in time.
bool TryToMigrate(Connection& connection, const PostgresOptions& options) {
    try {
        // Who waits for a table keeps everybody waiting who comes behind: so not for long.
        connection.Script(fmt::format(
            "BEGIN; SET LOCAL lock_timeout = '2s';"
            "SELECT pg_advisory_xact_lock(hashtextextended('{}', 7000))",
            options.schema
        ));
        // Somebody else may have done it while we waited.
        int version = VersionOf(connection, options.schema);
        RefuseNewer(version, options);
        if (version == 0) connection.Script(Preamble(options.schema));
        for (const Migration& migration : pg::Migrations()) {
            if (migration.number > version) connection.Script(TextOf(migration, options.schema));
        }
        connection.Script("COMMIT");
        return true;
    } catch (const postgres::SqlError& error) {
        connection.Script("ROLLBACK");
        if (error.sqlstate() != "55P03") throw;  // lock_not_available
        return false;
    }
}

void Migrate(const PostgresOptions& options) {
    std::unique_ptr<Connection> connection = Connect(options);
    // Most starts find nothing to do and need no lock.
    int version = VersionOf(*connection, options.schema);
    RefuseNewer(version, options);
    if (version == PostgresSchemaVersion()) return;
    base::Clock& clock = base::SystemClock();
    base::Instant until = clock.Now() + options.migrate_for;
    while (!TryToMigrate(*connection, options)) {
        if (clock.Now() >= until) {
            throw Unavailable(fmt::format(
                "schema \"{}\" could not be brought up to date for {} s: another session keeps "
                "its tables, or is changing it right now; pg_stat_activity shows which "
                "transaction has been open for long. End it or let it finish, then run: stint "
                "store migrate",
                options.schema,
                std::chrono::ceil<std::chrono::seconds>(options.migrate_for).count()
            ));
        }
        pg::Pause(std::chrono::milliseconds{500});
    }
}

void RefuseOlder(const PostgresOptions& options) {
    std::unique_ptr<Connection> connection = Connect(options);
    int version = VersionOf(*connection, options.schema);
    RefuseNewer(version, options);
    if (version == PostgresSchemaVersion()) return;
    throw WrongSchema(fmt::format(
        "schema \"{}\" has version {} and this program needs {}: run `stint store migrate`",
        options.schema,
        version,
        PostgresSchemaVersion()
    ));
}

}  // namespace

void MigratePostgres(const PostgresOptions& options) {
    WhileOpening([&] { Migrate(options); });
}

std::unique_ptr<Store> OpenPostgresStore(const PostgresOptions& options) {
    if (options.migrate) MigratePostgres(options);
    return WhileOpening([&] {
        RefuseOlder(options);
        return std::make_unique<pg::PostgresStore>(options);
    });
}

}  // namespace stint::store
