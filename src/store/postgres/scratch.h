// A schema for a benchmark, and what earlier benchmarks have left.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "postgres/connection.h"

namespace stint::store {

// Marks a schema as in use for as long as it lives: by a transaction that holds one advisory lock
// and nothing else, so that it works behind a transaction pooler too and keeps no old rows. When
// its process dies, the server lets the lock go.
class PostgresScratch {
public:
    // Refuses a role that may not make a schema. Throws Unavailable or NotAllowed.
    PostgresScratch(const std::string& url, const std::string& schema);

    struct Left {
        std::vector<std::string> removed;  // their benchmarks are dead
        std::vector<std::string> stay;     // not known to be dead, or not ours to drop
    };
    // What others have left in this database. Those that are in use are in neither list.
    Left Sweep();

private:
    bool Hold(postgres::Connection& connection, const std::string& schema);

    std::string url_;
    std::string schema_;
    std::unique_ptr<postgres::Connection> holder_;
};

// A right is missing; the message says which and who can give it.
class NotAllowed : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// Whether the name is one that a benchmark of ours gives: "stint_bench_12_0a1b2c3d".
bool IsScratchName(std::string_view schema);

}  // namespace stint::store
