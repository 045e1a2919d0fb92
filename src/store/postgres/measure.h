// What a PostgreSQL server tells of its own work, and what holds it back: for benchmarks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "postgres/connection.h"

namespace stint::store {

struct PostgresCounters {
    std::int64_t commits = 0;           // of the database
    std::int64_t wal_bytes = 0;         // of the whole server
    std::optional<std::int64_t> syncs;  // the same; nullopt where it does not tell
};

// All throw Unavailable.
class PostgresMeter {
public:
    explicit PostgresMeter(std::string url);

    PostgresCounters Read();
    // Connections add what they have counted from time to time only, and when they end.
    int ConnectionsNamed(const std::string& application);
    std::vector<std::pair<std::string, std::string>> Settings();  // of durability
    // The first process of a server that runs on this machine, where we can see it.
    std::optional<pid_t> LocalServer();

private:
    std::string url_;
    std::unique_ptr<postgres::Connection> connection_;
};

// Keeps the server from forgetting what is dead from now on, for as long as it lives.
class PostgresPin {
public:
    enum class Kind {
        kSnapshot,  // an idle transaction with an old snapshot
        kXid,       // an idle transaction that has written, or will
        kDump,      // what pg_dump does: a snapshot, and every table of the schema kept in place
    };
    PostgresPin(const std::string& url, const std::string& schema, Kind kind);

private:
    std::unique_ptr<postgres::Connection> connection_;
};

}  // namespace stint::store
