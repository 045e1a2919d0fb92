// Opens the store that a URL names.
#pragma once

#include <stint/log.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "store/store.h"

namespace stint::node {

struct StoreUrl {
    enum class Kind { kMemory, kSqlite, kPostgres } kind = Kind::kSqlite;
    std::string path;              // kSqlite: the file
    std::string connection;        // kPostgres: for libpq, without our own parameters
    std::string schema = "stint";  // kPostgres: ?stint_schema=…
};

// "memory:", "sqlite:PATH", "postgres://…" or "postgresql://…". The error names what was expected.
Result<StoreUrl> ParseStoreUrl(std::string_view url);

// The URL without its password, for people and logs.
std::string WithoutSecrets(std::string_view url);

struct StoreOptions {
    base::Clock& clock = base::SystemClock();
    base::Random& random = base::SystemRandom();
    LogSink log = {};
    bool migrate = true;  // create a new schema, or bring an older one up to date
};

// Waiting does not cure it: a wrong password, a database that does not exist. The message says what
// does.
class StoreRefuses : public store::Unavailable {
public:
    using store::Unavailable::Unavailable;
};

// What helps against a refusal that is told like this; empty when it is none.
std::string CureFor(std::string_view message);

// Throws store::Unavailable, store::WrongSchema, or std::invalid_argument for an address that names
// no store, each with a sentence for a person.
std::unique_ptr<store::Store> OpenStore(std::string_view url, const StoreOptions& options);

// Brings the store's schema up to date and returns the SQL that was run, in order; with `dry_run`
// the SQL that would be. Empty: nothing to do.
std::vector<std::string> MigrateStore(
    std::string_view url, bool dry_run, const StoreOptions& options
);

}  // namespace stint::node
