// The store in one SQLite file.
//
// Several processes may open the same file: the one that holds the lock beside it (`<path>.lock`)
// owns it and is the only one to touch it; the others speak to the owner through a socket beside it
// (`<path>.sock`) and notice nothing of it. When the owner dies, one of them takes over.
#pragma once

#include <stint/time.h>

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "store/store.h"

namespace stint::store {

struct SqliteOptions {
    std::string path;
    base::Clock* clock = &base::SystemClock();     // the store's clock, while this process owns it
    base::Random* random = &base::SystemRandom();  // safe from any thread
    base::Logger log;

    bool migrate = true;    // bring an older schema up to date; false = refuse it
    bool sync = true;       // false: commits are not forced to the disk (tests of other things)
    int readers = 4;        // reading connections
    int max_clients = 256;  // connections of other processes served at once
    Duration write_limit = std::chrono::seconds{5};  // for the host's own SQL in Write()
    Duration patience = std::chrono::seconds{10};  // how long to look for an owner, or to become it
    Duration reply_timeout = std::chrono::seconds{30};  // for one answer of an owner that lives
    Duration silence =
        std::chrono::seconds{2};  // until an owner that gives no sign counts as stopped
    Duration take_timeout = std::chrono::seconds{5};  // the owner: for a client to take an answer
    std::size_t answer_max = std::size_t{256} << 20;  // the owner: bytes of one answer
    bool force_client = false;                        // never become the owner (tests)
};

// Throws Unavailable (also for a file on a network file system) or WrongSchema.
std::unique_ptr<Store> OpenSqliteStore(const SqliteOptions& options);

struct SqliteMigration {
    int from = 0;
    int to = 0;
    std::string sql;  // what was run, or would be
};
// Brings the file's schema up to date; dry_run: only says what it would run.
SqliteMigration MigrateSqlite(const SqliteOptions& options, bool dry_run);

}  // namespace stint::store
