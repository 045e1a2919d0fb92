// The store on PostgreSQL 14 or later: many nodes on one database, everything in one schema.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/random.h"
#include "postgres/connection.h"
#include "store/store.h"

namespace stint::store {

struct PostgresOptions {
    std::string url;               // for libpq
    std::string schema = "stint";  // letters, digits and underscores
    base::Random& random = base::SystemRandom();
    base::Logger log = {};
    bool migrate = true;  // create the schema, or bring an older one up to date
    // How long it is tried again where another session keeps the tables, two seconds at a time.
    Duration migrate_for = std::chrono::minutes{2};
    // Connections at the most, each opened when first needed; few, whatever the number of slots.
    int connections = 4;  // for all that has none of its own below
    int reserved = 1;     // for what is looked up while another is in use
    int vital = 2;        // for heartbeats and claims
    int for_hosts = 4;    // for Write: transactions that last as long as the host likes
    postgres::ConnectOptions::Prepare prepare = postgres::ConnectOptions::Prepare::kAuto;
    // How long a block of ids that was taken ahead is used: the id of a task says in which period
    // it was submitted, and with it how long it is kept.
    Duration ids_kept = model::limits::kIdsKept;
    Duration acquire_timeout = std::chrono::seconds{10};
    // How long a submit waits for a key or a queue that somebody's open transaction holds.
    Duration held_patience = std::chrono::seconds{30};
    // How long a task that committed late, below positions already taken, may wait to be noticed.
    Duration rescan_every = std::chrono::seconds{10};
};

// Throws Unavailable (no server), WrongSchema (newer than this program, missing, or too old a
// server) or std::runtime_error (a wrong schema name), each with a sentence for a person.
std::unique_ptr<Store> OpenPostgresStore(const PostgresOptions& options);

// What migrating would run, in order; empty when the schema is up to date. Changes nothing.
std::vector<std::string> PendingMigrations(const PostgresOptions& options);
// Runs it. Several nodes may do so at once: one works, the others wait for it. Throws Unavailable
// when that was not possible in time.
void MigratePostgres(const PostgresOptions& options);
// The schema version of this program.
int PostgresSchemaVersion();

}  // namespace stint::store
