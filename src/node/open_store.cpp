#include "node/open_store.h"

#include <stdexcept>

#include "base/log.h"
#include "base/result.h"
#include "store/memory/memory_store.h"
#include "store/postgres/postgres_store.h"
#include "store/sqlite/sqlite_store.h"

namespace stint::node {

namespace {

StoreUrl ParseOrThrow(std::string_view url) {
    auto parsed = ParseStoreUrl(url);
    if (!parsed) throw std::invalid_argument(parsed.error().message);
    return std::move(*parsed);
}

store::SqliteOptions ForSqlite(const StoreUrl& url, const StoreOptions& options) {
    store::SqliteOptions sqlite;
    sqlite.path = url.path;
    sqlite.clock = &options.clock;
    sqlite.random = &options.random;
    sqlite.log = base::Logger(options.log, "sqlite");
    sqlite.migrate = options.migrate;
    return sqlite;
}

store::PostgresOptions ForPostgres(const StoreUrl& url, const StoreOptions& options) {
    return {
        .url = url.connection,
        .schema = url.schema,
        .random = options.random,
        .migrate = options.migrate,
    };
}

}  // namespace

std::unique_ptr<store::Store> OpenStore(std::string_view url, const StoreOptions& options) {
    StoreUrl parsed = ParseOrThrow(url);
    switch (parsed.kind) {
        case StoreUrl::Kind::kMemory:
            return store::MakeMemoryStore(options.clock, options.random);
        case StoreUrl::Kind::kSqlite:
            return store::OpenSqliteStore(ForSqlite(parsed, options));
        case StoreUrl::Kind::kPostgres:
            return store::OpenPostgresStore(ForPostgres(parsed, options));
    }
    throw std::logic_error("a store URL of no kind");
}

std::vector<std::string> MigrateStore(
    std::string_view url, bool dry_run, const StoreOptions& options
) {
    StoreUrl parsed = ParseOrThrow(url);
    if (parsed.kind == StoreUrl::Kind::kMemory) return {};
    if (parsed.kind == StoreUrl::Kind::kSqlite) {
        auto migration = store::MigrateSqlite(ForSqlite(parsed, options), dry_run);
        if (migration.from == migration.to) return {};
        return {migration.sql};
    }
    auto postgres = ForPostgres(parsed, options);
    auto pending = store::PendingMigrations(postgres);
    if (!dry_run && !pending.empty()) store::MigratePostgres(postgres);
    return pending;
}

}  // namespace stint::node
