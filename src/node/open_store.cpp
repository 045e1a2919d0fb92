#include "node/open_store.h"

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "base/log.h"
#include "base/result.h"
#include "base/text.h"
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
        .log = base::Logger(options.log, "postgres"),
        .migrate = options.migrate,
    };
}

// A file that is something else is neither touched nor given a lock beside it.
void CheckIsSqlite(const std::string& path) {
    constexpr std::string_view kMagic{"SQLite format 3\0", 16};
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) {
        throw std::invalid_argument(fmt::format("{} is a directory, not a SQLite file", path));
    }
    std::ifstream file(path, std::ios::binary);
    std::string begin(kMagic.size(), '\0');
    file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
    begin.resize(static_cast<std::size_t>(file.gcount()));
    if (begin.empty() || begin == kMagic) return;  // new, or ours, or SQLite says why not
    throw std::invalid_argument(fmt::format(
        "{} is not a SQLite database (it begins with {}); name another file: sqlite:PATH",
        path,
        base::Quoted(begin)
    ));
}

}  // namespace

// What libpq says when the server is there and does not want us. It has no code for it, only text,
// and a server may say it in another language: then it is retried like any other failure.
std::string CureFor(std::string_view message) {
    auto says = [&](std::string_view words) { return message.find(words) != message.npos; };
    if (says("authentication failed") || says("no password supplied")) {
        return "check user and password in the store's address, or give the password in ~/.pgpass "
               "or PGPASSWORD";
    }
    if (says("FATAL:  database") && says("does not exist")) {
        return "make the database with createdb, or name another in the store's address";
    }
    if (says("FATAL:  role") && says("does not exist")) {
        return "make the role with createuser, or name another in the store's address";
    }
    if (says("no pg_hba.conf entry")) {
        return "the server's pg_hba.conf does not let this user in from this machine";
    }
    return {};
}

namespace {

std::unique_ptr<store::Store> OpenPostgres(const StoreUrl& url, const StoreOptions& options) {
    try {
        return store::OpenPostgresStore(ForPostgres(url, options));
    } catch (const store::Unavailable& error) {
        std::string cure = CureFor(error.what());
        if (cure.empty()) throw;
        throw StoreRefuses(fmt::format("{}; {}", error.what(), cure));
    }
}

}  // namespace

std::unique_ptr<store::Store> OpenStore(std::string_view url, const StoreOptions& options) {
    StoreUrl parsed = ParseOrThrow(url);
    switch (parsed.kind) {
        case StoreUrl::Kind::kMemory:
            return store::MakeMemoryStore(options.clock, options.random);
        case StoreUrl::Kind::kSqlite:
            CheckIsSqlite(parsed.path);
            return store::OpenSqliteStore(ForSqlite(parsed, options));
        case StoreUrl::Kind::kPostgres:
            return OpenPostgres(parsed, options);
    }
    throw std::logic_error("a store URL of no kind");
}

std::vector<std::string> MigrateStore(
    std::string_view url, bool dry_run, const StoreOptions& options
) {
    StoreUrl parsed = ParseOrThrow(url);
    if (parsed.kind == StoreUrl::Kind::kMemory) return {};
    if (parsed.kind == StoreUrl::Kind::kSqlite) {
        CheckIsSqlite(parsed.path);
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
